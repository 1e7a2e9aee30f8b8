"""The demo's supervisor: what dies comes back, what is stopped stays away."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from demo.processes import Child, Family

ROOT = Path(__file__).resolve().parents[2]
SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "pids").mkdir()
    (tmp_path / "logs").mkdir()
    return tmp_path


def sleeper(home: Path, command: list[str] = SLEEPER) -> Child:
    return Child("sleeper", command, dict(os.environ), home, ROOT)


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_a_child_that_dies_is_started_again(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    family = Family()
    family.add(sleeper(home))
    try:
        first = int((home / "pids/sleeper.pid").read_text())
        os.kill(first, signal.SIGKILL)
        (child,) = family.children
        assert eventually(child.has_ended)
        family.revive()
        assert "sleeper ended with -9" in capsys.readouterr().out
        child.next_start_at = 0
        family.revive()
        assert int((home / "pids/sleeper.pid").read_text()) != first
    finally:
        family.stop()


def test_stopping_leaves_neither_process_nor_pid_file(home: Path) -> None:
    family = Family()
    family.add(sleeper(home))
    pid = int((home / "pids/sleeper.pid").read_text())
    family.stop()
    assert not alive(pid)
    assert list((home / "pids").iterdir()) == []


def test_children_die_with_a_killed_supervisor(home: Path) -> None:
    program = (
        "import os, sys, time; from pathlib import Path; from demo.processes import Child;"
        f"child = Child('sleeper', {SLEEPER!r}, dict(os.environ), Path(sys.argv[1]), Path('.'));"
        "child.start(); print(child.process.pid, flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", program, str(home)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stdout is not None
        pid = int(supervisor.stdout.readline())
        assert alive(pid)
        supervisor.kill()
    assert eventually(lambda: not alive(pid))


def test_what_a_crash_left_behind_is_ended_before_the_next_start(home: Path) -> None:
    left = subprocess.Popen(SLEEPER, start_new_session=True)
    assert eventually(lambda: Path(f"/proc/{left.pid}/cmdline").read_bytes() != b"")
    (home / "pids/sleeper.pid").write_text(str(left.pid))
    sleeper(home, [*SLEEPER[:-1], "pass"]).bury()
    assert left.poll() is None
    sleeper(home).bury()
    assert left.wait(10) == -signal.SIGKILL
