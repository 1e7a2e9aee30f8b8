"""A token shows itself to nobody: not to a log, a debugger, a pickle or a full disk."""

from __future__ import annotations

import copy
import json
import pickle
import traceback
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from countersign_agent import (
    Answer,
    CommitCall,
    Exchange,
    Guard,
    JsonFileStore,
    NoAnswer,
    Promises,
    Secret,
    SqliteStore,
    StateDamaged,
    TargetMisbehaved,
    as_json,
)
from countersign_agent.exchanges import Request
from countersign_agent.instants import now, write_instant
from countersign_agent.state import HeldIntent, TaskState
from countersign_agent.surroundings import Surroundings

TOKEN = "tok_that_nobody_may_see"


class Paper:
    """A target of our own: an adapter is three methods. Its dry run says what a test wants."""

    promises, seconds = Promises(), 1.0

    def __init__(self, **members: Any) -> None:
        self.members = members
        self.numbers = iter(range(1, 100))

    def dry_run(self, operation: str, inputs: bytes) -> Exchange:
        soon = write_instant(now() + timedelta(minutes=10))
        action = {"op": "update", "target": "page/1", "field": "text", "from": "a", "to": "b"}
        members = {
            "plan_id": f"plan_{next(self.numbers)}",
            "plan_token": TOKEN,
            "input_fingerprint": "fp_1",
            "expires_at": soon,
            "actions": [action],
        }
        given = {name: value for name, value in (members | self.members).items() if value != "-"}
        return Answer(200, json.dumps(given).encode())

    def commit(self, call: CommitCall) -> Exchange:
        return NoAnswer("timeout")

    def read(self, plan_id: str) -> Exchange:
        return NoAnswer("timeout")


def planned() -> tuple[Guard, TaskState]:
    """A guard whose task holds a plan with a token."""
    guard = Guard(None, {"wiki": Paper()})
    task = guard.task("t")
    task.plan("wiki", "edit", {"page": 1})
    assert task.core.known is not None
    return guard, task.core.known


def shown(error: BaseException) -> str:
    """The error as an error reporter sends it: with the variables of every frame of ours."""
    trace = traceback.TracebackException.from_exception(error, capture_locals=True)
    ours = [frame for frame in trace.stack if frame.filename != __file__]
    assert ours
    assert trace.__context__ is None
    return "".join([str(error), repr(vars(error)), *(repr(frame.locals) for frame in ours)])


def test_nothing_of_a_state_shows_its_token() -> None:
    guard, state = planned()
    plan = state.intents[0].plans[0]
    assert plan.token == Secret(TOKEN)
    for thing in (state, plan, plan.token, plan.response, state.text(), guard, guard.around):
        for text in (repr(thing), str(thing), f"{thing}", f"{[thing]!r}"):
            assert TOKEN not in text
    request = Request("POST", "http://x/", {"Authorization": TOKEN}, TOKEN.encode())
    assert TOKEN not in repr(request)
    assert TOKEN not in repr(Answer(200, TOKEN.encode()))


@pytest.mark.parametrize("act", [pickle.dumps, copy.copy, copy.deepcopy, asdict])
def test_a_state_is_neither_pickled_nor_copied(act: Callable[[Any], Any]) -> None:
    _, state = planned()
    for thing in (state, state.intents[0].plans[0].token):
        if act is asdict and not isinstance(thing, TaskState):
            continue
        with pytest.raises(TypeError) as refused:
            act(thing)
        assert TOKEN not in shown(refused.value)


def test_a_secret_equals_itself_and_is_in_no_set() -> None:
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    with pytest.raises(TypeError):
        hash(Secret("a"))


@pytest.mark.parametrize(
    "members",
    [
        {"plan_id": "-"},
        {"plan_id": ".."},
        {"plan_id": "a/b"},
        {"plan_token": ""},
        {"plan_token": None},
        {"input_fingerprint": "-"},
        {"input_fingerprint": 1},
        {"expires_at": "2030-01-01 10:00:00"},
        {"expires_at": "2030-01-01T10:00:00"},
        {"expires_at": "2030-01-01T10:00:00-00:00"},
        {"expires_at": "2030-02-30T10:00:00Z"},
        {"expires_at": 1893495600},
        {"actions": []},
        {"actions": [{"op": "update"}]},
        {"covers": "page/1"},
    ],
)
def test_a_dry_run_that_lacks_something_is_no_plan(members: dict[str, Any]) -> None:
    task = Guard(None, {"wiki": Paper(**members)}).task("t")
    with pytest.raises(TargetMisbehaved) as refused:
        task.plan("wiki", "edit", {"page": 1})
    assert TOKEN not in shown(refused.value)
    assert task.plans() == ()


def test_an_expiry_becomes_utc_once() -> None:
    task = Guard(None, {"wiki": Paper(expires_at="2099-01-01T12:00:00.250+02:00")}).task("t")
    plan = task.plan("wiki", "edit", {"page": 1}).plan
    assert plan is not None
    assert plan.expires_at.isoformat() == "2099-01-01T10:00:00.250000+00:00"


def test_the_answer_is_kept_byte_for_byte(tmp_path: Path) -> None:
    odd = '{"actions": [{"op":"update","target":"p","field":"f","from":1.50,"to":"\\u00e9"}], '
    odd += f'"plan_id":"p1","plan_token":"{TOKEN}","input_fingerprint":"f",'
    odd += '"expires_at":"2099-01-01T12:00:00Z" , "x": [ ]}'
    target = Paper()
    target.dry_run = lambda operation, inputs: Answer(200, odd.encode())  # type: ignore[method-assign]
    store = JsonFileStore(tmp_path / "state.json")
    first = Guard(None, {"wiki": target}, store).task("t")
    first.plan("wiki", "edit", {"page": 1})
    first.suspend()
    again = Guard(None, {"wiki": target}, store).task("t")
    again.plans()
    assert again.core.known is not None
    assert again.core.known.intents[0].plans[0].response == Secret(odd)


# ── Stores ──────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("store", [JsonFileStore, SqliteStore])
def test_a_file_is_its_owners_and_forgets_what_is_dropped(store: Any, tmp_path: Path) -> None:
    kept = store(tmp_path / "state")
    kept.hold("t")
    kept.save("t", Secret(f'{{"token":"{TOKEN}"}}'))
    kept.save("u", Secret('{"token":"other"}'))
    assert store(tmp_path / "state").tasks() == ["t", "u"]
    assert TOKEN.encode() in (tmp_path / "state").read_bytes()
    assert all(file.stat().st_mode & 0o077 == 0 for file in tmp_path.iterdir())
    kept.drop("t")
    kept.release("t")
    assert all(TOKEN.encode() not in file.read_bytes() for file in tmp_path.iterdir())
    assert kept.tasks() == ["u"]


@pytest.mark.parametrize("store", [JsonFileStore, SqliteStore])
def test_a_damaged_file_is_told_and_not_guessed(store: Any, tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(f'{{"t":{{"plan_token":"{TOKEN}"'.encode() * 99)

    def use() -> None:
        kept = store(tmp_path / "state")
        kept.hold("t")

    with pytest.raises(StateDamaged) as damaged:
        use()
    assert TOKEN not in shown(damaged.value)


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '{"version":2,"task":{}}',
        f'{{"version":1,"task":{{"task_id":"t","intents":[{{"token":"{TOKEN}"}}]}}}}',
    ],
)
def test_a_damaged_state_is_told_and_not_guessed(text: str, tmp_path: Path) -> None:
    kept = SqliteStore(tmp_path / "state")
    kept.save("t", Secret(text))
    task = Guard(None, {}, kept).task("t")
    with pytest.raises(StateDamaged) as damaged:
        task.plans()
    assert TOKEN not in shown(damaged.value)
    kept.hold("t")


def test_a_full_disk_shows_no_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    store = JsonFileStore(tmp_path / "state.json")
    task = Guard(None, {"wiki": Paper()}, store).task("t")
    task.plans()
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space") as error:
        task.plan("wiki", "edit", {"page": 1})
    assert TOKEN not in shown(error.value)
    monkeypatch.undo()
    assert not (tmp_path / "state.json").exists()


def test_a_state_comes_back_as_it_was() -> None:
    _, state = planned()
    again = TaskState.parse(state.text())
    assert again.text() == state.text()
    assert again.intents[0].inputs == b'{"page":1}'
    assert isinstance(again.intents[0], HeldIntent)
    assert as_json(Surroundings).__class__ is type
