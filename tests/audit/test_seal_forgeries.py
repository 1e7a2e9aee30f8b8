"""Somebody makes seals or checkpoints anew, with or without the key; `verify` tells them apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from audit import checkpoints as checkpoint_files
from audit import seals, stored
from audit.signing import new_key, signer
from audit.verification import verify
from tests.audit.trail import attack, first, seal_all, sealed

pytestmark = pytest.mark.usefixtures("one_transaction")


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
