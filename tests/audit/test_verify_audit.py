"""The command that verifies the trail: what it says, and its exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.audit.trail import attack, cut_tail, sealed

pytestmark = pytest.mark.usefixtures("one_transaction")


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
