"""PostgreSQL 18 and Valkey 9 from wheels, for a machine that has neither.

State lives in one home (`.demo/`, `.demo/test/`): ports are chosen once and remembered, and both
servers outlive the process that started them, so each start adopts what already runs.
`DATABASE_URL` and `REDIS_URL` take the place of the one or the other. This module reads no
settings: `manage.py` needs it before they exist.
"""

import base64
import fcntl
import json
import os
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from config import env
from config.servers import (
    WAIT_SECONDS,
    EmbeddedError,
    Place,
    Postgres,
    Server,
    Valkey,
    free_port,
    is_free,
)

NAMES = ("postgres", "valkey")
VARIABLES = {"postgres": "DATABASE_URL", "valkey": "REDIS_URL"}
DEFAULT_HOME = Path(__file__).resolve().parent.parent / ".demo"
DATABASE = "countersign"
SECRETS = frozenset({"secret_key", "encryption_keys", "audit_signing_keys"})
# How long a remembered port may be busy before another one is taken.
PATIENCE_SECONDS = 3.0


def home_folder() -> Path:
    """`COUNTERSIGN_HOME`, or `.demo/` of this checkout."""
    return Path(os.environ.get("COUNTERSIGN_HOME") or DEFAULT_HOME).resolve()


def needed() -> tuple[str, ...]:
    """The servers for which the environment names no real one."""
    return tuple(
        name
        for name in NAMES
        if not (os.environ.get(VARIABLES[name]) or os.environ.get(f"{VARIABLES[name]}_FILE"))
    )


def write_private(path: Path, value: object) -> None:
    """Replace a JSON file in one step; nobody else may read it."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    fresh.unlink(missing_ok=True)
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(value, file, indent=2)
        file.write("\n")
    _give_to_owner(fresh)
    fresh.replace(path)


def _give_to_owner(path: Path) -> None:
    """What root writes into another user's home stays usable for that user."""
    if os.geteuid() == 0:
        owner = path.parent.stat()
        os.chown(path, owner.st_uid, owner.st_gid)


def _random_key() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


class Cluster:
    """Both servers of one home. Every method may be called by any number of processes at once."""

    def __init__(self, home: Path | None = None, durable: bool = True) -> None:
        self.home = home or home_folder()
        self.state_file = self.home / "embedded.json"
        self.durable = durable

    def state(self) -> dict[str, Any]:
        """What is remembered: `{"ports": {name: port}, "place": path, "durable": bool}`."""
        try:
            return dict(json.loads(self.state_file.read_text()))
        except FileNotFoundError:
            return {}

    def urls(self) -> dict[str, str]:
        """Addresses by server name. Chooses ports at the first call, starts nothing."""
        ports = self.state().get("ports")
        if ports is None:
            with self._lock():
                ports = self._ports()
        return {
            "postgres": f"postgresql://countersign@127.0.0.1:{ports['postgres']}/{DATABASE}",
            "valkey": f"redis://127.0.0.1:{ports['valkey']}/0",
        }

    def secrets(self) -> dict[str, Any]:
        """`secret_key`, `encryption_keys` and `audit_signing_keys`, made at the first call."""
        if (kept := self._kept_secrets()).keys() >= SECRETS:
            return kept
        with self._lock():
            made = {
                "secret_key": secrets.token_urlsafe(48),
                "encryption_keys": [_random_key()],
                "audit_signing_keys": [_random_key()],
            }
            # What an older version made stays; what it did not know is added.
            write_private(self.home / "secrets.json", made | self._kept_secrets())
        return self._kept_secrets()

    def _kept_secrets(self) -> dict[str, Any]:
        try:
            return dict(json.loads((self.home / "secrets.json").read_text()))
        except FileNotFoundError:
            return {}

    def start(self, names: tuple[str, ...] = NAMES) -> None:
        """Start what is down, adopt what runs. EmbeddedError says what stands in the way."""
        with self._lock():
            self._ports()
            servers = self._servers(self._place())
            down = [name for name in names if servers[name].pid() is None]
            if down:
                place = self._place()
                place.find_binaries()
                for name in down:
                    self._start(name, self._servers(place)[name])
            if "postgres" in names and not self.state().get("database"):
                create_database(self.urls()["postgres"])
                self._remember(database=True)

    def stop(self, names: tuple[str, ...] = NAMES, immediate: bool = False) -> None:
        """Stop what runs; `immediate` as a crash would."""
        with self._lock():
            self._stop(names, immediate)

    def restart(self, names: tuple[str, ...] = NAMES, immediate: bool = False) -> None:
        """Stop and start on the same ports, with nobody else's start in between."""
        self.stop(names, immediate)
        self.start(names)

    def status(self) -> dict[str, dict[str, Any]]:
        """`{name: {"pid": number or None, "url": address}}`; starts nothing."""
        urls = self.urls()
        servers = self._servers()
        pids = {name: servers[name].pid() for name in servers}
        return {name: {"pid": pids.get(name), "url": urls[name]} for name in NAMES}

    def wipe(self) -> None:
        """Stop both and remove their data, wherever it is."""
        with self._lock():
            self._stop(NAMES, immediate=True)
            place = self.state().get("place")
            if place:
                shutil.rmtree(place, ignore_errors=True)
            self.state_file.unlink(missing_ok=True)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        try:
            self.home.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.home / "embedded.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except PermissionError as error:
            raise EmbeddedError(
                f"{error.filename} belongs to another user: set COUNTERSIGN_HOME to a folder of "
                "yours, or remove it as its owner (`make demo-reset`)."
            ) from None
        _give_to_owner(self.home / "embedded.lock")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _remember(self, **changes: object) -> None:
        write_private(self.state_file, self.state() | changes)

    def _ports(self) -> dict[str, int]:
        if "ports" not in self.state():
            self._remember(ports={name: free_port() for name in NAMES})
        return dict(self.state()["ports"])

    def _place(self) -> Place:
        place = self.state().get("place")
        if not place or not Path(place).exists():
            place = str(Place.create(self.home).root)
            self._remember(place=place, durable=self.durable, database=False)
        return Place(Path(place))

    def _servers(self, place: Place | None = None) -> dict[str, Server]:
        """Both servers by name; none when they were never started here."""
        state = self.state()
        if place is None:
            if not Path(state.get("place", "/nonexistent")).exists():
                return {}
            place = Place(Path(state["place"]))
        return {"postgres": Postgres(place, bool(state.get("durable"))), "valkey": Valkey(place)}

    def _start(self, name: str, server: Server) -> None:
        """Insist for a while: a killed server holds its port and memory for about a second."""
        begun = time.monotonic()
        port = self._ports()[name]
        while True:
            waited = time.monotonic() - begun
            try:
                if is_free(port):
                    return server.start(port)
                if waited > PATIENCE_SECONDS:
                    port = free_port()
                    self._remember(ports=self._ports() | {name: port})
            except EmbeddedError:
                if waited > WAIT_SECONDS:
                    raise
            time.sleep(0.1)

    def _stop(self, names: tuple[str, ...], immediate: bool) -> None:
        for name, server in self._servers().items():
            if name in names and server.pid() is not None:
                server.stop(immediate)


def start_needed(durable: bool = True) -> Cluster:
    """Start the servers of the default home that the environment does not replace."""
    cluster = Cluster(durable=durable)
    if names := needed():
        cluster.start(names)
    return cluster


def create_database(url: str) -> None:
    """Create the database that `url` names, unless it exists."""
    import psycopg  # the address alone is enough for most commands; the driver is slow to load
    from psycopg import sql

    address, _, name = url.rpartition("/")
    name = name.partition("?")[0]
    with psycopg.connect(f"{address}/postgres", autocommit=True) as connection:
        found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name])
        if found.fetchone() is None:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


def begin() -> None:
    """Start what is needed and print where it is, as `credentials.json` names it."""
    cluster = start_needed()
    cluster.secrets()
    urls = cluster.urls()
    given = {name: env.optional(VARIABLES[name]) for name in NAMES}
    addresses = {VARIABLES[name].lower(): given[name] or urls[name] for name in NAMES}
    print(json.dumps(addresses))


def main(arguments: list[str]) -> int:
    """`python -m config.embedded start|stop|wipe`: for scripts that cannot wait for Django."""
    actions: dict[str, Callable[[], object]] = {
        "start": begin,
        "stop": Cluster().stop,
        "wipe": Cluster().wipe,
    }
    if len(arguments) != 1 or arguments[0] not in actions:
        print("usage: python -m config.embedded start|stop|wipe", file=sys.stderr)
        return 2
    try:
        actions[arguments[0]]()
    except EmbeddedError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
