"""Somebody with every right of the database changes the trail; `verify` names the first bad row."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from audit import checkpoints as checkpoint_files
from audit import eras, seals, stored
from audit.models import Event
from audit.offline.formats import SealRecord
from audit.offline.report import Finding, Report
from audit.signing import new_key, signer
from audit.verification import verify
from tests.audit.trail import attack, seal_all, sealed, sql, triggers_off, write

pytestmark = pytest.mark.usefixtures("one_transaction")


def first(report: Report) -> Finding:
    assert not report.holds
    return report.findings[0]


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


def cut_tail(number: int) -> None:
    """The newest seals from `number` on, with all events under them."""
    attack(
        "DELETE FROM audit_event WHERE (era, xid, id) >="
        " (SELECT era, first_xid, first_id FROM audit_seal WHERE number = %s)",
        number,
    )
    attack("DELETE FROM audit_seal WHERE number >= %s", number)


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


def forge(seal: SealRecord, **changes: Any) -> None:
    """Store a seal anew, with a hash that fits what it says now."""
    seal = replace(seal, **changes)
    seal = replace(seal, hash=sha256(seal.header()).hexdigest())
    attack("DELETE FROM audit_seal WHERE number = %s", seal.number)
    seals._store(seal)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("count = count + 1", "hash"),
        ("total = total + 1", "hash"),
        ("at = at - interval '1 day'", "hash"),
        ("at = '-infinity'", "hash"),
        ("hash = repeat('0', 64)", "hash"),
        ("signature = repeat('00', 64)", "its signature is not one of key"),
        ("signature = 'nonsense'", "its signature is not one of key"),
        ("manifest = ''", "as many entries"),
        ("manifest = overlay(manifest PLACING '\\x01' FROM 17)", "manifest is not what was signed"),
        ("manifest = substr(manifest, 2)", "as many entries"),
    ],
)
def test_a_seal_that_was_touched_is_forged(change: str, words: str) -> None:
    sealed(2, 2)
    attack(f"UPDATE audit_seal SET {change} WHERE number = 2")
    report = verify()
    assert (first(report).kind, first(report).seal) == ("forged", 2)
    assert words in first(report).text


def edit_and_reseal(settings: Any, key: str) -> None:
    """Edit an event and make its seal, and all after it, anew."""
    attack(
        "UPDATE audit_event SET actor_label = 'ada' WHERE id = (SELECT min(id) FROM audit_event)"
    )
    attack("DELETE FROM audit_seal")
    kept, settings.AUDIT_SIGNING_KEYS = settings.AUDIT_SIGNING_KEYS, [key]
    settings.AUDIT_CHECKPOINTS_FILE = None
    seal_all()
    settings.AUDIT_SIGNING_KEYS = kept


def test_a_chain_under_another_key_is_forged(settings: Any) -> None:
    sealed(2, 2)
    edit_and_reseal(settings, new_key())
    assert first(verify()).kind == "forged"
    assert "unknown key" in first(verify()).text


def test_even_the_stolen_key_cannot_undo_a_checkpoint(settings: Any, checkpoints: Path) -> None:
    sealed(2, 2)
    edit_and_reseal(settings, settings.AUDIT_SIGNING_KEYS[0])
    assert verify().holds  # this much it does not prove
    assert first(verify(checkpoints, required=True)).kind == "truncated"


@pytest.mark.parametrize(
    "changes",
    [
        {"previous": "1" * 64},
        {"total": 5},
        {"number": 1},
        {"first_id": 1},
        {"last_xid": 2**62},
    ],
)
def test_a_seal_must_continue_the_one_before(changes: dict[str, Any], settings: Any) -> None:
    """Signed with the right key, yet not what a sealer makes."""
    sealed(2, 2)
    _, second = stored.seals()
    attack("DELETE FROM audit_seal WHERE number = 1") if "number" in changes else None
    wrong = replace(second, **changes)
    header = wrong.header()
    signature = signer().sign(header)
    attack("DELETE FROM audit_seal WHERE number = 2")
    seals._store(replace(wrong, hash=sha256(header).hexdigest(), signature=signature))
    assert first(verify()).kind == "forged"


@pytest.mark.parametrize(
    ("tamper", "kind"),
    [
        (lambda head: head | {"hash": "0" * 64}, "forged"),
        (lambda head: head | {"number": 7}, "forged"),
        (lambda head: head | {"key_id": "0" * 16}, "forged"),
    ],
)
def test_a_checkpoint_that_was_touched_is_told(
    checkpoints: Path, tamper: Callable[[dict[str, Any]], dict[str, Any]], kind: str
) -> None:
    sealed(1)
    head = tamper(json.loads(checkpoints.read_text()))
    checkpoints.write_text(json.dumps(head) + "\n")
    assert first(verify(checkpoints)).kind == kind


def test_checkpoints_of_another_trail_are_a_note_where_they_were_not_asked_for(
    settings: Any, checkpoints: Path
) -> None:
    foreign = {"trail": "f" * 64, "place": "other/00000001/5"}
    sealed(1)
    seal = next(stored.seals())
    checkpoints.unlink()
    checkpoint_files.publish(seal, foreign["trail"], foreign["place"])
    report = verify(checkpoints)
    assert (report.holds, report.notes) == (
        True,
        ["1 checkpoints are of other trails and were left out"],
    )
    assert first(verify(checkpoints, required=True)).text == (
        "no checkpoint of the file is of this trail"
    )


def test_many_bad_rows_are_counted_and_the_first_is_named() -> None:
    events = sealed(80)
    attack("UPDATE audit_event SET title = 'x'")
    report = verify()
    assert (first(report).event, report.found, len(report.findings)) == (events[0].pk, 80, 50)


# ── The command ─────────────────────────────────────────────────────────────────────────────
def test_the_command_says_that_it_verifies(capsys: Any, checkpoints: Path) -> None:
    sealed(2)
    call_command("verify_audit", checkpoints=checkpoints)
    out = capsys.readouterr().out
    assert "2 events under 1 seals" in out
    assert "1 checkpoints of this trail compared" in out
    assert out.splitlines()[-1].startswith("The audit trail verifies up to 20")
    assert "prove" not in out
    call_command("verify_audit", checkpoints=checkpoints, verbosity=2)
    assert "It does not prove:" in capsys.readouterr().out


def test_the_command_says_that_a_database_without_a_trail_has_none() -> None:
    attack("ALTER TABLE audit_seal RENAME TO audit_seal_gone")
    try:
        with pytest.raises(CommandError, match="no trail at all"):
            call_command("verify_audit")
    finally:
        attack("ALTER TABLE audit_seal_gone RENAME TO audit_seal")


def test_the_command_exits_1_and_names_the_first_bad_row(capsys: Any) -> None:
    events = sealed(3)
    attack("DELETE FROM audit_event WHERE id = %s", events[1].pk)
    with pytest.raises(SystemExit) as stopped:
        call_command("verify_audit")
    assert stopped.value.code == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("The audit trail does NOT verify (1 found). First deleted: event ")
    assert f"event {events[1].pk} " in last


def test_the_command_tells_it_as_json(capsys: Any) -> None:
    events = sealed(3)
    attack("UPDATE audit_event SET title = 'x' WHERE id = %s", events[1].pk)
    capsys.readouterr()
    with pytest.raises(SystemExit):
        call_command("verify_audit", json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["holds"], told["found"], told["seals"]) == (False, 1, 1)
    assert (told["first"]["kind"], told["first"]["event"]) == ("edited", events[1].pk)


def test_the_commands_default_is_the_file_that_the_sealer_writes(capsys: Any) -> None:
    sealed(1, 1)
    cut_tail(2)
    with pytest.raises(SystemExit):
        call_command("verify_audit")
    assert "truncated" in capsys.readouterr().out
