"""The servers that come along: started, adopted, survived, removed. Each test has its own pair."""

import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from config.embedded import Cluster, needed, write_private
from config.servers import EmbeddedError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        cluster = Cluster(Path(folder) / "home", durable=False)
        yield cluster
        cluster.wipe()


def number_in(cluster: Cluster, statement: str) -> int:
    with psycopg.connect(cluster.urls()["postgres"], autocommit=True) as connection:
        row = connection.execute(statement.encode()).fetchone()
    assert row is not None
    return int(row[0])


def pids(cluster: Cluster) -> list[int | None]:
    return [server["pid"] for server in cluster.status().values()]


def test_it_starts_adopts_and_stops_both(cluster: Cluster) -> None:
    cluster.start()
    first = pids(cluster)
    assert number_in(cluster, "SHOW server_version_num") >= 180000
    with redis.Redis.from_url(cluster.urls()["valkey"]) as valkey:
        assert valkey.ping()
    Cluster(cluster.home).start()
    assert pids(cluster) == first
    cluster.stop()
    assert pids(cluster) == [None, None]


def test_below_a_closed_folder_they_run_without_opening_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    cluster = Cluster(tmp_path / "home", durable=False)
    try:
        cluster.start()
        assert number_in(cluster, "SELECT 1") == 1
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
    finally:
        cluster.wipe()


def test_committed_rows_survive_a_crash_on_the_same_address(cluster: Cluster) -> None:
    cluster.start()
    before = cluster.urls()
    with psycopg.connect(before["postgres"]) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
    for pid in pids(cluster):
        os.kill(pid or 0, signal.SIGKILL)
    while pids(cluster) != [None, None]:
        time.sleep(0.01)
    cluster.start()
    assert cluster.urls() == before
    assert number_in(cluster, "SELECT n FROM kept") == 7
    cluster.restart(("postgres",), immediate=True)
    assert number_in(cluster, "SELECT n FROM kept") == 7


def test_a_recycled_process_number_is_not_taken_for_the_server(cluster: Cluster) -> None:
    cluster.start(("postgres",))
    pid_file = Path(cluster.state()["place"]) / "postgres" / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    cluster.stop(immediate=True)
    # A program of the same account that was given the number after a reboot.
    account = pid_file.parent.stat()
    other = subprocess.Popen(["sleep", "60"], user=account.st_uid if os.geteuid() == 0 else None)
    try:
        pid_file.write_text("\n".join([str(other.pid), *lines[1:]]) + "\n")
        os.chown(pid_file, account.st_uid, account.st_gid)
        assert pids(cluster) == [None, None]
        cluster.start(("postgres",))
        assert number_in(cluster, "SELECT 1") == 1
    finally:
        other.kill()
        other.wait()


def test_starts_at_the_same_time_make_one_pair(cluster: Cluster) -> None:
    environment = os.environ | {"COUNTERSIGN_HOME": str(cluster.home)}
    for name in ("DATABASE_URL", "REDIS_URL"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "config.embedded", "start"]
    starts = [
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    printed = {start.communicate()[0] for start in starts}
    assert [start.returncode for start in starts] == [0] * 4
    assert len(printed) == 1
    assert number_in(cluster, "SELECT 1") == 1


def test_a_port_that_somebody_took_is_given_up(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("config.embedded.PATIENCE_SECONDS", 0.1)
    port = int(cluster.urls()["valkey"].rpartition(":")[2].split("/")[0])
    with socket.create_server(("127.0.0.1", port)):
        cluster.start(("valkey",))
        assert f":{port}/" not in cluster.urls()["valkey"]


def test_secrets_are_made_once_and_are_private(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    assert cluster.secrets() == Cluster(tmp_path).secrets()
    assert stat.S_IMODE((tmp_path / "secrets.json").stat().st_mode) == 0o600


def test_it_says_whose_folder_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, *_rest: object) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(EmbeddedError, match="belongs to another user"):
        Cluster(tmp_path).start()


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({}, ("postgres", "valkey")),
        ({"DATABASE_URL": "postgresql://db/x"}, ("valkey",)),
        ({"REDIS_URL_FILE": "/run/secrets/redis"}, ("postgres",)),
        ({"DATABASE_URL": "postgresql://db/x", "REDIS_URL": "redis://r"}, ()),
    ],
)
def test_real_servers_take_the_place_of_ours(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], left: tuple[str, ...]
) -> None:
    for name in ("DATABASE_URL", "REDIS_URL", "DATABASE_URL_FILE", "REDIS_URL_FILE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert needed() == left


def test_a_home_of_an_older_version_gets_what_it_did_not_know(tmp_path: Path) -> None:
    kept = {"secret_key": "s", "encryption_keys": ["k"], "demo": {"api_key": "cs_1"}}
    write_private(tmp_path / "secrets.json", kept)
    secrets = Cluster(tmp_path).secrets()
    assert kept.items() <= secrets.items()
    assert len(secrets["audit_signing_keys"]) == 1
    assert Cluster(tmp_path).secrets() == secrets
