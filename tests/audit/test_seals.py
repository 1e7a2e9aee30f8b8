"""Seals close what was written, in order, once, and continue each other (L-2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.utils import ProgrammingError

from audit import eras, stored
from audit.actions import Action
from audit.models import Era, Event, Seal
from audit.offline.formats import FIELDS, GENESIS, entry, packed
from audit.seals import seal_once
from audit.signing import rotated, signer
from audit.verification import verify
from tests.audit.trail import attack, seal_all, sealed, sql, write

pytestmark = pytest.mark.usefixtures("one_transaction")


def test_a_seal_closes_all_that_was_written() -> None:
    events = write(3)
    seal_all()
    seal = next(stored.seals())
    assert (seal.number, seal.count, seal.total, seal.previous) == (1, 3, 3, GENESIS)
    assert (seal.first_id, seal.last_id) == (events[0].pk, events[-1].pk)
    assert verify().holds


def test_nothing_new_makes_no_seal() -> None:
    assert seal_once() is None
    sealed(2)
    assert seal_once() is None
    assert Seal.objects.count() == 1


def test_every_seal_continues_the_one_before() -> None:
    sealed(2, 1, 4)
    first, second, third = stored.seals()
    assert (second.previous, third.previous) == (first.hash, second.hash)
    assert [seal.total for seal in (first, second, third)] == [2, 3, 7]
    report = verify()
    assert (report.holds, report.events, report.seals) == (True, 7, 3)


def test_a_long_backlog_becomes_several_seals() -> None:
    write(7)
    assert seal_all(most=3) == 7
    assert [seal.count for seal in stored.seals()] == [3, 3, 1]
    assert verify().holds


def test_every_column_is_under_the_seal() -> None:
    assert set(FIELDS) == {field.column for field in Event._meta.concrete_fields}


def test_null_and_empty_are_different_rows() -> None:
    assert packed("v", [None, "1:a,"]) != packed("v", ["", "1:a,"]) != packed("v", ["1:a,", ""])
    assert packed("v", ["ä", None]) == b"v\n2:\xc3\xa4,~"


def test_the_canonical_row_never_changes() -> None:
    """Seals of years ago must verify: another serialisation needs another label."""
    row = ["1", "7", "3", "1764427200000001", *["é"] * 13, None, "", '{"a": 1.0}']
    digest = "9729fe29c59e62f96d4bd4c8c3d211f482dc312af250d79564e50db9451a2c1c"
    assert entry(row).hex() == f"{7:016x}{3:016x}{digest}"


@pytest.mark.parametrize("table", ["audit_seal", "audit_era"])
@pytest.mark.parametrize("statement", ["UPDATE {} SET era = 2", "DELETE FROM {}", "TRUNCATE {}"])
def test_seals_and_eras_take_insert_alone(table: str, statement: str) -> None:
    sealed(1)
    statement = statement.replace("era", "reason = '' --") if table == "audit_era" else statement
    with pytest.raises(ProgrammingError, match="append-only"), transaction.atomic():
        sql(statement.format(table))


def test_a_checkpoint_leaves_with_every_seal(checkpoints: Path, capfd: Any) -> None:
    sealed(2, 1)
    first, second = map(json.loads, checkpoints.read_text().splitlines())
    seals = list(stored.seals())
    assert (first["number"], second["number"]) == (1, 2)
    assert [first["hash"], second["hash"]] == [seal.hash for seal in seals]
    assert (first["trail"], second["count"], second["era"]) == (second["trail"], 3, 1)
    report = verify(checkpoints, required=True)
    assert (report.holds, report.checkpoints) == (True, 2)


def test_a_file_that_cannot_be_written_stops_no_seal(settings: Any, tmp_path: Path) -> None:
    settings.AUDIT_CHECKPOINTS_FILE = str(tmp_path / "nowhere" / "checkpoints.jsonl")
    sealed(1)
    assert verify().holds


def test_what_a_full_disk_cut_off_accuses_nobody(checkpoints: Path) -> None:
    sealed(1)
    with checkpoints.open("ab") as file:
        file.write(b'{"trail": "9f')
    sealed(1)
    report = verify(checkpoints, required=True)
    assert (report.holds, report.checkpoints) == (True, 2)
    assert report.notes == ["1 lines are no checkpoints and were left out"]


def test_an_older_key_still_verifies_after_a_rotation(settings: Any, checkpoints: Path) -> None:
    sealed(1)
    old = signer().key_id
    settings.AUDIT_SIGNING_KEYS = rotated(settings.AUDIT_SIGNING_KEYS)
    sealed(1)
    first, second = stored.seals()
    assert (first.key_id, second.key_id) == (old, signer().key_id)
    assert first.key_id != second.key_id
    assert verify(checkpoints, required=True).holds
    settings.AUDIT_SIGNING_KEYS = settings.AUDIT_SIGNING_KEYS[:1]
    assert verify().findings[0].text == f"seal 1: it is signed with an unknown key, '{old}'"


def test_unsealed_events_are_told_and_are_no_fault_while_they_are_young() -> None:
    sealed(1)
    write(2)
    report = verify()
    assert (report.holds, report.unsealed) == (True, 2)
    report = verify(max_unsealed_seconds=-1)
    assert [finding.kind for finding in report.findings] == ["unsealed"]


def test_the_latest_events_alone_begin_at_a_seal() -> None:
    sealed(5, 5, 5)
    report = verify(latest=6)
    assert (report.holds, report.from_seal, report.seals, report.events) == (True, 2, 2, 10)
    report = verify(latest=5)
    assert (report.from_seal, report.events) == (3, 5)
    assert verify(latest=15).from_seal == 1
    attack("UPDATE audit_event SET title = 'x' WHERE id = (SELECT min(id) FROM audit_event)")
    assert verify(latest=6).holds
    assert not verify().holds


def test_time_may_step_back(checkpoints: Path) -> None:
    """FM-36: seals order by (xid, id); `at` is only shown."""
    sealed(1)
    sql(
        "INSERT INTO audit_event (at, action, actor_kind, actor_id, actor_label, agent, target,"
        " operation, plan_id, task_id, title, from_status, to_status, request_id, details)"
        " VALUES (now() - interval '1 hour', 'plan.expired', '', '', '', '', '', '', '', '', '',"
        " '', '', '', '{}')"
    )
    assert seal_all() == 1
    assert verify(checkpoints).holds


@pytest.mark.parametrize(
    "details",
    ['{"n": 1e400}', '{"n": 123456789012345678901234567890.10}', '{"t": "\\u202e\\ud83d\\ude00"}'],
)
def test_numbers_and_texts_of_every_size_are_sealed_as_they_are_stored(details: str) -> None:
    write(1)
    attack("UPDATE audit_event SET details = %s", details)
    assert seal_all() == 1
    assert verify().holds
    attack("UPDATE audit_event SET details = details || '{\"n\": 1.00}'")
    assert [finding.kind for finding in verify().findings] == ["edited"]


def test_a_place_of_another_database_begins_an_era() -> None:
    sealed(2)
    attack("UPDATE audit_era SET place = 'another/00000001/5'")
    assert eras.check() == 2
    assert eras.check() is None
    event = Event.objects.get(action=Action.AUDIT_ERA_BEGAN)
    assert (event.era, event.details["from"]) == (2, "another/00000001/5")
    write(1)
    assert seal_all() == 2
    assert [(seal.era, seal.count) for seal in stored.seals()] == [(1, 2), (2, 2)]
    assert verify().holds


def test_transaction_ids_that_start_again_begin_an_era(checkpoints: Path) -> None:
    """A dump, read into a fresh cluster, brings xids that this cluster has yet to reach."""
    sealed(2)
    events = write(1)
    attack("UPDATE audit_event SET xid = xid + 1000000000 WHERE id = %s", events[0].pk)
    assert eras.check() == 2
    write(1)
    assert seal_all() == 1  # what was open in the old era is closed first
    assert seal_all() == 2
    assert [(seal.era, seal.count) for seal in stored.seals()] == [(1, 2), (1, 1), (2, 2)]
    assert verify(checkpoints, required=True).holds


def test_an_era_waits_for_those_who_write() -> None:
    assert eras.check() is None
    assert Era.objects.get().place == stored.database()
    with connection.cursor() as cursor:
        cursor.execute("SELECT audit_current_era()")
        assert cursor.fetchone() == (1,)
