"""A stranger verifies an exported bundle: no server, no Django, nothing but a folder (L-3)."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from audit.signing import new_key, public_keys, signer
from tests.audit.trail import attack, sealed, write

pytestmark = pytest.mark.usefixtures("one_transaction")


@pytest.fixture
def bundle(one_transaction: None, tmp_path: Path) -> Path:
    """Five sealed events and one that is not."""
    events = sealed(3, 2)
    attack("UPDATE audit_event SET ip = '192.0.2.7' WHERE id > %s", events[-1].pk)
    write(1)
    call_command("export_audit", tmp_path / "bundle")
    return tmp_path / "bundle"


def verify(bundle: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """With nothing of the repository in reach: the bundle's own copy, in an empty environment."""
    return subprocess.run(
        [sys.executable, "-I", str(bundle / "verifier"), str(bundle), *map(str, arguments)],
        cwd="/",
        env={},
        capture_output=True,
        text=True,
        check=False,
    )


def change(path: Path, edit: Callable[[list[Any]], list[Any]]) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in edit(lines)))


def test_a_bundle_verifies(bundle: Path) -> None:
    done = verify(bundle)
    assert (done.returncode, done.stderr) == (0, "")
    assert "5 events under 2 seals" in done.stdout
    assert "2 checkpoints of this trail compared" in done.stdout
    assert "1 events are not sealed yet" in done.stdout
    assert f"bundle's own ({signer().key_id})" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("The audit trail verifies up to ")


def test_it_also_runs_from_the_checkout(bundle: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    for command in (["audit/offline"], ["-m", "audit.offline"]):
        done = subprocess.run(
            [sys.executable, *command, str(bundle), "--json"],
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
        told = json.loads(done.stdout)
        assert (told["holds"], told["events"], told["unsealed"]) == (True, 5, 1)


def without(number: int) -> Callable[[list[Any]], list[Any]]:
    return lambda lines: lines[:number] + lines[number + 1 :]


def with_member(number: int, **members: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda lines: [
        line | members if index == number else line for index, line in enumerate(lines)
    ]


@pytest.mark.parametrize(
    ("file", "edit", "kind"),
    [
        ("events", with_member(1, details='{"number": 7}'), "edited"),
        ("events", with_member(1, title=None), "edited"),
        ("events", with_member(1, title=""), "edited"),
        ("events", without(1), "deleted"),
        ("events", lambda lines: [lines[1], lines[0], *lines[2:]], "deleted"),
        ("events", lambda lines: [lines[0], *lines], "inserted"),
        ("seals", without(0), "deleted"),
        ("seals", without(1), "truncated"),
        ("seals", with_member(1, at=1), "forged"),
        ("seals", with_member(1, manifest=""), "forged"),
    ],
)
def test_a_bundle_that_was_changed_does_not(
    bundle: Path, file: str, edit: Callable[[list[Any]], list[Any]], kind: str
) -> None:
    change(bundle / f"{file}.jsonl", edit)
    done = verify(bundle, "--json")
    assert done.returncode == 1
    assert kind in {finding["kind"] for finding in json.loads(done.stdout)["findings"]}


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("events.jsonl", "{"),
        ("events.jsonl", "[]\n"),
        ("events.jsonl", "{}\n"),
        ("seals.jsonl", '{"number": 1}\n'),
        ("bundle.json", "{}"),
        ("bundle.json", '{"format": "other"}'),
    ],
)
def test_a_bundle_that_is_none_is_unreadable(bundle: Path, file: str, text: str) -> None:
    (bundle / file).write_text(text)
    done = verify(bundle)
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot be read" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_stranger_names_the_key_to_trust(bundle: Path, settings: Any) -> None:
    name = signer().key_id
    assert verify(bundle, "--key", name).returncode == 0
    settings.AUDIT_SIGNING_KEYS = [new_key()]
    (other,) = public_keys().values()
    text = base64.b64encode(other).decode()
    done = verify(bundle, "--key", text)
    assert done.returncode == 1
    assert "unknown key" in done.stdout
    assert verify(bundle, "--key", "nonsense!").returncode == 2


def test_a_stranger_brings_checkpoints_of_their_own(bundle: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    kept.write_text((bundle / "checkpoints.jsonl").read_text())
    assert verify(bundle, "--checkpoints", kept).returncode == 0
    change(bundle / "seals.jsonl", without(1))
    change(bundle / "events.jsonl", lambda lines: lines[:3])
    (bundle / "checkpoints.jsonl").write_text("")
    assert verify(bundle).returncode == 0
    done = verify(bundle, "--checkpoints", kept)
    assert done.returncode == 1
    assert "First truncated: era 1 was exported up to seal 2" in done.stdout


def test_a_bundle_never_mixes_with_another(bundle: Path) -> None:
    with pytest.raises(CommandError, match="not empty"):
        call_command("export_audit", bundle)


def test_nothing_of_the_private_key_leaves(bundle: Path, settings: Any) -> None:
    secret = settings.AUDIT_SIGNING_KEYS[0].rstrip("=")
    for path in bundle.rglob("*"):
        assert path.is_dir() or secret not in path.read_text()
