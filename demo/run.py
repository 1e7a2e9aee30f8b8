"""`make demo`: everything in one terminal, until Ctrl-C.

Starts PostgreSQL and Valkey, prepares the database, then the web server, both workers, the sweeper,
the billing target and the support agent; starts again what dies; stops all of it at the end.
"""

import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

import psycopg

from demo.keepsakes import AGENT, Keepsakes
from demo.processes import Child, Family, die_with_parent

ROOT = Path(__file__).resolve().parent.parent
HOME = Path(os.environ.get("COUNTERSIGN_HOME") or ROOT / ".demo").resolve()
PORT = int(os.environ.get("PORT") or 8000)
BILLING_PORT = int(os.environ.get("BILLING_PORT") or 8001)
CONFIG = ROOT / "demo" / "config.toml"
CONFIGURED_BILLING_URL = "http://127.0.0.1:8001"
READY_SECONDS = 60.0


class StopRequestedError(BaseException):
    """Ctrl-C, or a signal that means the same; passes every handler of ordinary errors."""


class DemoError(Exception):
    """The demo cannot start; the message says what to do."""


def python(environment: Mapping[str, str], *arguments: str) -> str:
    """Run to the end and return what it printed; DemoError with its complaint."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise DemoError(f"{' '.join(arguments)} failed:\n{done.stderr.strip()}")
    return done.stdout


class Demo:
    """One run: its addresses, its keepsakes, its processes."""

    def __init__(self) -> None:
        servers = json.loads(python(os.environ, "-m", "config.embedded", "start"))
        self.keepsakes = Keepsakes(HOME)
        self.addresses: dict[str, str] = {
            "base_url": os.environ.get("BASE_URL") or f"http://127.0.0.1:{PORT}",
            "billing_url": f"http://127.0.0.1:{BILLING_PORT}",
            **servers,
        }
        self.environment = {
            **os.environ,
            **self.keepsakes.environment(),
            "COUNTERSIGN_HOME": str(HOME),
            "PORT": str(PORT),
            "BILLING_PORT": str(BILLING_PORT),
            "BILLING_DATABASE_URL": self.billing_database(),
            "PYTHONUNBUFFERED": "1",
        }

    def billing_database(self) -> str:
        """A database of its own on the same server: billing is somebody else's system."""
        given = os.environ.get("BILLING_DATABASE_URL")
        if given:
            return given
        address = self.addresses["database_url"]
        with psycopg.connect(address, autocommit=True) as connection:
            query = "SELECT 1 FROM pg_database WHERE datname = 'billing'"
            if connection.execute(query).fetchone() is None:
                connection.execute("CREATE DATABASE billing")
        return urlsplit(address)._replace(path="/billing").geturl()

    def config_file(self) -> Path:
        """`demo/config.toml`, or a copy below the home when billing listens elsewhere."""
        if self.addresses["billing_url"] == CONFIGURED_BILLING_URL:
            return CONFIG
        copy = HOME / "config.toml"
        billing_url = self.addresses["billing_url"]
        copy.write_text(CONFIG.read_text().replace(CONFIGURED_BILLING_URL, billing_url))
        for schema in CONFIG.parent.glob("*.json"):
            (HOME / schema.name).write_bytes(schema.read_bytes())
        return copy

    def child(self, name: str, *arguments: str, role: str = "", pool: int = 8) -> Child:
        environment = self.environment | {"DATABASE_POOL_MAX": str(pool)}
        if role:
            environment["COUNTERSIGN_ROLE"] = role
        return Child(name, [sys.executable, *arguments], environment, HOME, ROOT)

    def worker(self, queue: str, threads: int) -> Child:
        quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
        options = ("-P", "threads", "-c", str(threads), "-Q", queue, "-n", f"{queue}@%h", *quiet)
        celery = ("-m", "celery", "-A", "config.celery", "worker", *options)
        return self.child(f"worker-{queue}", *celery, role="worker", pool=threads + 4)

    def children(self) -> list[Child]:
        """What needs the database to be ready, and the web server not yet."""
        listen = ("--host", "127.0.0.1", "--port", str(PORT), "--no-proxy-headers")
        quiet = ("--no-server-header", "--no-access-log", "--timeout-graceful-shutdown", "3")
        uvicorn = ("-m", "uvicorn", "config.asgi:application", *listen, *quiet)
        return [
            self.child("web", *uvicorn, role="web", pool=16),
            self.worker("commit", 8),
            self.worker("default", 4),
            self.child("sweeper", "manage.py", "sweep", role="sweeper", pool=12),
        ]

    def new_api_key(self) -> None:
        printed = python(self.environment, "manage.py", "create_api_key", AGENT)
        found = re.search(r"cs_\S+", printed)
        if found is None:
            raise DemoError("create_api_key printed no key.")
        self.keepsakes.keep_api_key(found[0])

    def key_is_known(self) -> bool:
        """False when the database is another one than the key was made for."""
        headers = {"Authorization": f"Bearer {self.keepsakes.kept['api_key']}"}
        url = f"http://127.0.0.1:{PORT}/api/v1/plans?limit=1"
        try:
            urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10)
        except urllib.error.HTTPError as error:
            return error.code != 401
        return True

    def run(self, family: Family) -> None:
        """Start everything, say so, and watch until a signal comes."""
        family.add(self.child("billing", "-m", "demo.billing"))
        python(self.environment, "manage.py", "prepare", "--config", str(self.config_file()))
        family.add(*self.children())
        if "api_key" not in self.keepsakes.kept:
            self.new_api_key()
        for url in (f"http://127.0.0.1:{PORT}", self.addresses["billing_url"]):
            self.wait_for(f"{url}/health/live", family)
        if not self.key_is_known():
            self.new_api_key()
        credentials = self.keepsakes.write_credentials(self.addresses)
        if os.environ.get("DEMO_AGENT") != "0":
            family.add(self.child("agent", "-m", "demo.agent"))
        self.greet(credentials)
        while True:
            family.revive()
            time.sleep(0.5)

    def wait_for(self, url: str, family: Family) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(url, timeout=5)
            except OSError:
                family.revive()
                time.sleep(0.1)
            else:
                return
        raise DemoError(f"{url} does not answer. The logs in {HOME / 'logs'} say why.")

    def greet(self, credentials: Path) -> None:
        passwords = self.keepsakes.kept["passwords"]
        key = self.keepsakes.kept["api_key"]
        base = self.addresses["base_url"]
        body = (
            '{"target":"billing","operation":"refund","task_id":"try-1",'
            '"inputs":{"amount_cents":1500,"invoice_id":"4471"},"reason":"Arrived broken."}'
        )
        print(
            f"Countersign  {base}/review/\n"
            f"Billing      {self.addresses['billing_url']}  (the target that it writes to)\n"
            f"Sign in      ada  {passwords['ada']}  (reviews)\n"
            f"             mona {passwords['mona']}  (audits; the others: {credentials})\n\n"
            f"Ask for a refund as an agent, then approve it as ada:\n"
            f"  curl {base}/api/v1/intents -H 'Authorization: Bearer {key}' \\\n"
            f"    -H 'Content-Type: application/json' \\\n    -d '{body}'\n\n"
            f"Logs in {HOME / 'logs'}. Ctrl-C stops everything.",
            flush=True,
        )


@contextmanager
def only_one() -> Iterator[None]:
    """Hold the home for this run; DemoError when another run has it."""
    for folder in (HOME, HOME / "pids", HOME / "logs"):
        folder.mkdir(parents=True, exist_ok=True)
    with (HOME / "supervisor.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DemoError(f"A demo already runs in {HOME}. Stop it first.") from None
        lock.truncate(0)
        print(os.getpid(), file=lock, flush=True)
        yield


def require_ports() -> None:
    """DemoError when a port is taken, after the time that a previous run may need to end."""
    deadline = time.monotonic() + 12
    for variable, port in (("PORT", PORT), ("BILLING_PORT", BILLING_PORT)):
        while not _is_free(port):
            if time.monotonic() > deadline:
                raise DemoError(
                    f"Port {port} is taken. Choose another one: {variable}={port + 100} make demo"
                )
            time.sleep(0.2)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def main() -> int:
    """0 after Ctrl-C; 1 when it cannot start."""
    if os.environ.get("MAKELEVEL"):
        die_with_parent()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, request_stop)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, request_stop)
    try:
        with only_one():
            live_and_stop()
    except StopRequestedError:
        return 0
    except DemoError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def request_stop(_number: int, _frame: FrameType | None) -> None:
    raise StopRequestedError


def live_and_stop() -> None:
    """Whatever ends the run, nothing of it is left."""
    family = Family()
    try:
        require_ports()
        Demo().run(family)
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        print("Stopping …", flush=True)
        family.stop()
        python(os.environ, "-m", "config.embedded", "stop")


if __name__ == "__main__":
    sys.exit(main())
