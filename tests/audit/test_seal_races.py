"""Writers never wait, several sealers at once, and nothing is missed or sealed twice (L-2)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection, connections, transaction
from django.db.utils import IntegrityError, OperationalError

from audit import actors, eras, seals, stored
from audit.actions import Action
from audit.models import Era, Event, Seal
from audit.offline.formats import ENTRY, SealRecord
from audit.recording import Subject, record
from audit.verification import verify
from tests.audit.trail import seal_all, settle, sql, write

pytestmark = pytest.mark.django_db(transaction=True)

WRITERS = 8
ROUNDS = 25


@contextmanager
def other_session() -> Iterator[psycopg.Connection]:
    """A session of its own, as another process has one."""
    given = connection.get_connection_params()
    names = ("dbname", "user", "password", "host", "port")
    with psycopg.connect(**{k: given[k] for k in names if k in given}, autocommit=True) as session:
        yield session


INSERT = (
    "INSERT INTO audit_event (action, actor_kind, actor_id, actor_label, agent, target, operation,"
    " plan_id, task_id, title, from_status, to_status, request_id, details)"
    " VALUES ('plan.expired', '', '', %s, '', '', '', '', '', '', '', '', '', '{}')"
)


def sealed_ids() -> list[int]:
    return [pk for seal in stored.seals() for _, pk, _ in ENTRY.iter_unpack(seal.manifest)]


def test_a_late_commit_holds_the_seal_back_and_is_not_missed() -> None:
    with other_session() as late:
        late.execute("BEGIN")
        late.execute(INSERT, ["late"])
        write(3)
        assert seals.seal_once() is None
        late.execute("COMMIT")
    assert seal_all() == 4
    assert verify().holds


def test_a_rolled_back_event_and_a_savepoint_leave_no_hole() -> None:
    with other_session() as session:
        session.execute("BEGIN")
        session.execute(INSERT, ["kept"])
        session.execute("SAVEPOINT one")
        session.execute(INSERT, ["gone"])
        session.execute("ROLLBACK TO one")
        session.execute("SAVEPOINT two")
        session.execute(INSERT, ["kept too"])
        session.execute("COMMIT")
    assert seal_all() == 2
    kept = Event.objects.order_by("xid", "id")
    assert [event.actor_label for event in kept] == ["kept", "kept too"]
    assert verify().holds


def test_a_sealer_steps_aside_for_another() -> None:
    write(2)
    settle()
    with other_session() as other:
        other.execute("BEGIN")
        other.execute("SELECT pg_advisory_xact_lock(%s)", [seals.LOCK])
        assert seals.seal_once() is None
        other.execute("ROLLBACK")
    assert seal_all() == 2


def test_a_seal_wants_a_fresh_snapshot_for_the_rows() -> None:
    write(1)
    with transaction.atomic():
        sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        with pytest.raises(RuntimeError, match="READ COMMITTED"):
            seals.seal_once()


def test_nothing_is_missed_and_nothing_is_sealed_twice() -> None:
    """Writers with rollbacks and savepoints, three sealers, one verifier, all at once."""
    done = threading.Event()
    found: list[bool] = []

    def seal() -> None:
        while not done.is_set():
            seals.seal_once(most=40)
            time.sleep(0.003)

    def look() -> None:
        while not done.is_set():
            found.append(verify().holds)
            time.sleep(0.02)

    with ThreadPoolExecutor(WRITERS + 4) as pool:
        watchers = [pool.submit(closing(act)) for act in (seal, seal, seal, look)]
        writers = [pool.submit(closing(write_much)) for _ in range(WRITERS)]
        written = [writer.result() for writer in writers]
        done.set()
        for watcher in watchers:
            watcher.result()
    seal_all()
    assert sum(written) == Event.objects.count() == len(sealed_ids())
    assert sorted(sealed_ids()) == sorted(Event.objects.values_list("pk", flat=True))
    report = verify()
    assert (report.holds, report.events, report.unsealed) == (True, sum(written), 0)
    assert found
    assert all(found)


def closing[T](act: Callable[[], T]) -> Callable[[], T]:
    def run() -> T:
        try:
            return act()
        finally:
            connections.close_all()

    return run


def write_much() -> int:
    """How many events stayed; every third transaction is rolled back."""
    stayed = 0
    for number in range(ROUNDS):
        with transaction.atomic():
            for _ in range(1 + number % 3):
                record(Action.PLAN_EXPIRED, actors.CLOCK, Subject(), {"number": number})
            if number % 5 == 0:
                time.sleep(0.004)
            if number % 3 == 2:
                transaction.set_rollback(True)
            else:
                stayed += 1 + number % 3
    return stayed


def test_a_new_era_waits_for_those_who_write() -> None:
    """An event of the old era that commits after one of the new era would never be sealed."""
    with other_session() as writer:
        writer.execute("BEGIN")
        writer.execute(INSERT, ["old era"])
        sql("SET session_replication_role = replica")
        sql("UPDATE audit_era SET place = 'another/00000001/5'")
        sql("SET session_replication_role = DEFAULT")
        with ThreadPoolExecutor(1) as pool:
            began = pool.submit(closing(eras.check))
            time.sleep(0.2)
            assert not began.done()
            writer.execute("COMMIT")
            assert began.result(timeout=10) == 2
    write(1)
    assert seal_all() == 1
    assert seal_all() == 2
    assert [(seal.era, seal.count) for seal in stored.seals()] == [(1, 1), (2, 2)]
    assert verify().holds


def test_two_processes_begin_one_era() -> None:
    sql("SET session_replication_role = replica")
    sql("UPDATE audit_era SET place = 'another/00000001/5'")
    sql("SET session_replication_role = DEFAULT")
    with ThreadPoolExecutor(4) as pool:
        began = [each.result() for each in [pool.submit(closing(eras.check)) for _ in range(4)]]
    assert sorted(map(str, began)) == ["2", "None", "None", "None"]
    assert Era.objects.count() == 2


def test_a_seal_that_is_rolled_back_leaves_no_checkpoint(
    checkpoints: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(1)
    settle()

    def fail(seal: SealRecord) -> None:
        raise OperationalError("no space left on device")

    monkeypatch.setattr(seals, "_store", fail)
    with pytest.raises(OperationalError):
        seals.seal_once()
    assert not Seal.objects.exists()
    assert not checkpoints.exists()


def test_the_sweeper_seals() -> None:
    write(3)
    settle()
    call_command("sweep", once=True)
    assert len(sealed_ids()) == 3
    assert verify().holds


def test_no_event_no_change() -> None:
    """FM-53: where the trail takes no event, the change it belongs to does not happen."""
    sql("ALTER TABLE audit_event ADD CONSTRAINT full_disk CHECK (action = '') NOT VALID")
    try:
        with pytest.raises(IntegrityError):
            hire_mallory()
    finally:
        sql("ALTER TABLE audit_event DROP CONSTRAINT full_disk")
    assert not User.objects.exists()


@transaction.atomic
def hire_mallory() -> None:
    User.objects.create_user("mallory")
    write(1)
