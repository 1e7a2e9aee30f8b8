"""Somebody with every right of the database changes the trail; `verify` names the first bad row."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit import eras, stored
from audit.models import Event
from audit.verification import verify
from tests.audit.trail import attack, cut_tail, first, seal_all, sealed, sql, triggers_off, write

pytestmark = pytest.mark.usefixtures("one_transaction")


@pytest.mark.parametrize(
    "change",
    [
        "actor_label = 'mallory'",
        "title = title || ' '",
        "details = jsonb_set(details, '{changed,0,current}', '20001')",
        "details = jsonb_set(details, '{changed,0,current}', '20000.0')",
        "details = jsonb_set(details, '{changed,0,current}', '\"20000\"')",
        "details = details || '{\"note\": null}'",
        "at = at + interval '1 microsecond'",
        "at = 'infinity'",
        "intent_id = '00000000-0000-0000-0000-000000000007'",
        "ip = '192.0.2.7'",
        "request_id = '~'",
        "plan_id = plan_id || ',', task_id = ''",
        "agent = target, target = agent",
    ],
)
def test_an_edited_event_is_named(change: str) -> None:
    events = sealed(3, 3)
    attack(f"UPDATE audit_event SET {change} WHERE id = %s", events[1].pk)
    report = verify()
    assert (first(report).kind, first(report).event, report.found) == ("edited", events[1].pk, 1)


def test_an_event_that_was_put_elsewhere_is_missing_here_and_inserted_there() -> None:
    events = sealed(3, 3)
    attack("UPDATE audit_event SET xid = %s WHERE id = %s", events[5].xid, events[1].pk)
    kinds = [(finding.kind, finding.event) for finding in verify().findings]
    assert kinds == [("deleted", events[1].pk), ("inserted", events[1].pk)]


@pytest.mark.parametrize("numbers", [[0], [2], [3], [5], [0, 1, 2], [2, 3], [0, 1, 2, 3, 4, 5]])
def test_a_deleted_event_is_named(numbers: list[int]) -> None:
    events = sealed(3, 3)
    gone = [events[number].pk for number in numbers]
    attack("DELETE FROM audit_event WHERE id = ANY(%s)", gone)
    report = verify()
    assert [(finding.kind, finding.event) for finding in report.findings] == [
        ("deleted", pk) for pk in gone
    ]


@pytest.mark.parametrize("like", [0, 2, 3, 4])
def test_an_event_inserted_among_sealed_ones_is_named(like: int) -> None:
    events = sealed(3, 3)
    copy = ", ".join(name for name in columns() if name != "id")
    attack(
        f"INSERT INTO audit_event ({copy}) SELECT {copy} FROM audit_event WHERE id = %s",
        events[like].pk,
    )
    report = verify()
    newest = Event.objects.order_by("-id").values_list("pk", flat=True)[0]
    assert (first(report).kind, first(report).event, report.found) == ("inserted", newest, 1)
    assert "under no seal" in first(report).text


@pytest.mark.parametrize("place", ["era = 0", "xid = -1", "xid = 0"])
def test_an_event_before_the_beginning_is_inserted(place: str) -> None:
    sealed(2)
    late = write(1)[0].pk
    attack(f"UPDATE audit_event SET {place} WHERE id = %s", late)
    assert (first(verify()).kind, first(verify()).event) == ("inserted", late)


def columns() -> list[str]:
    return [str(field.column) for field in Event._meta.concrete_fields]


def test_two_swapped_events_are_both_named() -> None:
    events = sealed(4)
    pair = events[1].pk, events[2].pk
    with triggers_off():
        for pk, other in ((pair[0], -1), (pair[1], pair[0]), (-1, pair[1])):
            sql("UPDATE audit_event SET id = %s WHERE id = %s", other, pk)
    report = verify()
    assert {finding.event for finding in report.findings} == set(pair)
    assert first(report).event == pair[0]


def test_swapped_words_of_two_events_are_both_edited() -> None:
    events = sealed(4)
    pair = [events[1].pk, events[2].pk]
    attack(
        "UPDATE audit_event AS a SET details = b.details, plan_id = b.plan_id FROM audit_event AS b"
        " WHERE a.id = ANY(%s) AND b.id = ANY(%s) AND a.id <> b.id",
        pair,
        pair,
    )
    assert [(each.kind, each.event) for each in verify().findings] == [
        ("edited", pk) for pk in pair
    ]


def test_a_cut_tail_shows_against_the_checkpoints_alone(checkpoints: Path) -> None:
    sealed(2, 2, 2)
    cut_tail(2)
    assert verify().holds  # what was exported is the only witness
    report = verify(checkpoints, required=True)
    assert (first(report).kind, first(report).seal) == ("truncated", 2)
    assert "exported up to seal 2, the trail ends with seal 1" in first(report).text


def test_a_cut_tail_shows_even_after_the_trail_went_on(checkpoints: Path) -> None:
    sealed(2, 2, 2)
    cut_tail(2)
    sealed(2, 2, 2)
    report = verify(checkpoints, required=True)
    assert (first(report).kind, first(report).seal) == ("truncated", 2)
    assert "another seal of this number" in first(report).text


@pytest.mark.parametrize("given", [True, False])
def test_a_trail_that_was_replaced_as_a_whole_shows(checkpoints: Path, given: bool) -> None:
    sealed(2, 2)
    cut_tail(1)
    report = verify(checkpoints, required=given)
    assert first(report).kind == "truncated"
    assert "gone from this database" in first(report).text
    sealed(3)
    assert first(verify(checkpoints, required=given)).kind == "truncated"


def test_an_old_backup_in_place_of_the_trail_shows(checkpoints: Path) -> None:
    """The backup goes on in a new era, its end is lost and the checkpoints know it."""
    sealed(2, 2)
    for table in ("audit_event", "audit_seal"):
        sql(f"CREATE TEMPORARY TABLE backup_{table} AS SELECT * FROM {table}")
    sealed(3)
    with triggers_off():
        for table in ("audit_event", "audit_seal"):
            sql(f"DELETE FROM {table}")
            sql(f"INSERT INTO {table} SELECT * FROM backup_{table}")
        # Read back into another cluster: another place, and transaction ids start again.
        sql("UPDATE audit_era SET place = 'another/00000001/5'")
    assert eras.check() == 2
    assert seal_all() == 1
    assert verify().holds
    assert [seal.era for seal in stored.seals()] == [1, 1, 2]
    report = verify(checkpoints, required=True)
    assert (first(report).kind, report.found) == ("truncated", 1)
    assert first(report).seal == 3
    assert "the end of era 1 was lost" in first(report).text


def test_deleted_seals_in_the_middle_are_named() -> None:
    sealed(1, 1, 1, 1)
    attack("DELETE FROM audit_seal WHERE number IN (2, 3)")
    report = verify()
    assert (first(report).kind, first(report).text) == ("deleted", "seals 2 to 3 are missing")


def test_many_bad_rows_are_counted_and_the_first_is_named() -> None:
    events = sealed(80)
    attack("UPDATE audit_event SET title = 'x'")
    report = verify()
    assert (first(report).event, report.found, len(report.findings)) == (events[0].pk, 80, 50)
