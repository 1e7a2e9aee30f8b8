"""How an outcome is found out: which steps leave the process, row by row, for any target."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from countersign_agent import (
    Answer,
    CommitCall,
    Exchange,
    Guard,
    NoAnswer,
    NotSent,
    OutcomeUnknown,
    Promises,
)
from countersign_agent.instants import now, write_instant
from tests.sdk.programs import QUICK

SILENCE = NoAnswer("timeout")
NOWHERE = NotSent("ConnectError")


def say(status: int, /, **members: Any) -> Answer:
    return Answer(status, json.dumps(members).encode())


APPLIED = say(200, plan_id="plan_1", status="applied", result={"done": True})
MOVED = say(409, changed=[{"path": "text", "planned": "a", "current": "c"}])
BUSY = Answer(429, b"{}", {"retry-after": "0"})


def state(word: str) -> Answer:
    return say(200, plan_id="plan_1", status=word, result={"done": True})


class Scripted:
    """Answers commits and reads by its script; the last line of each stays."""

    def __init__(self, commits: str, reads: str = "", **promises: Any) -> None:
        self.promises, self.seconds = Promises(**promises), 1.0
        self.said = {"commit": self._lines(commits), "read": self._lines(reads or "unreadable")}
        self.steps: list[str] = []
        self.keys: set[str] = set()
        self.plans = iter(range(1, 99))

    def _lines(self, words: str) -> Iterator[str]:
        *first, last = words.split()
        yield from first
        while True:
            yield last

    def dry_run(self, operation: str, inputs: bytes) -> Exchange:
        self.steps.append("dry run")
        action = {"op": "update", "target": "page/1", "field": "text", "from": "a", "to": "b"}
        ends = write_instant(now() + timedelta(minutes=10))
        return say(
            200,
            plan_id=f"plan_{next(self.plans)}",
            plan_token="tok_of_the_plan",
            input_fingerprint="fp",
            expires_at=ends,
            actions=[action],
        )

    def commit(self, call: CommitCall) -> Exchange:
        self.steps.append("commit")
        self.keys.add(call.idempotency_key)
        return self._answer(next(self.said["commit"]))

    def read(self, plan_id: str) -> Exchange:
        self.steps.append("read")
        return self._answer(next(self.said["read"]))

    def _answer(self, word: str) -> Exchange:
        known: dict[str, Exchange] = {
            "applied": APPLIED,
            "moved": MOVED,
            "busy": BUSY,
            "silence": SILENCE,
            "unreadable": SILENCE,
            "nowhere": NOWHERE,
        }
        if word == "raises":
            raise LookupError("an adapter with a fault of its own")
        if word.isdigit():
            return say(int(word))
        return known.get(word) or state(word)


PROMISED = {"enforces_expiry": True, "key_retention_seconds": 86_400}
FIVE = "commit commit commit commit"


@pytest.mark.parametrize(
    ("commits", "reads", "status", "steps"),
    [
        ("applied", "", "committed", "commit"),
        ("nowhere nowhere applied", "", "committed", "commit commit commit"),
        ("busy applied", "", "committed", "commit commit"),
        ("404", "", "failed", "commit"),
        # A first refusal is confirmed by a read.
        ("moved", "open", "conflicted", "commit read dry-run"),
        ("moved", "applied", "committed", "commit read"),
        ("410", "expired", "expired", "commit read dry-run"),
        ("moved applied", "unreadable", "committed", "commit read read commit"),
        # After a silence nothing negative is believed.
        ("silence 404 applied", "open", "committed", "commit commit read commit"),
        ("silence moved applied", "open", "committed", "commit commit read commit"),
        ("silence moved", "not_applied", "conflicted", "commit commit read dry-run"),
        ("silence 401", "applied", "committed", "commit commit read"),
        ("silence nowhere applied", "open", "committed", "commit commit commit"),
        ("silence", "applied", "committed", f"{FIVE} read"),
        ("silence", "open open applied", "committed", f"{FIVE} read read read"),
        ("500 applied", "in_progress open", "committed", "commit read read commit"),
        ("500", "in_progress in_progress applied", "committed", "commit read read read"),
        ("500", "partly_applied", "unresolved", "commit read"),
    ],
)
def test_the_steps_to_the_truth(commits: str, reads: str, status: str, steps: str) -> None:
    target = Scripted(commits, reads, **PROMISED)
    task = Guard(None, {"wiki": target}, patience=replace(QUICK, read_every=0.05)).task("t")
    planned = task.plan("wiki", "edit", {"page": 1})
    assert planned.plan is not None
    outcome = task.commit(planned.plan.plan_id)
    assert outcome.status == status
    assert target.steps[1:] == [step.replace("dry-run", "dry run") for step in steps.split()]
    assert target.keys == {planned.plan.idempotency_key}


def planned(target: Scripted, **options: Any) -> tuple[Any, str]:
    guard = Guard(None, {"wiki": target}, patience=replace(QUICK, commit=0.5), **options)
    task = guard.task("t")
    made = task.plan("wiki", "edit", {"page": 1})
    assert made.plan is not None
    return task, made.plan.plan_id


def test_without_idempotency_it_is_sent_once_ever() -> None:
    target = Scripted("silence applied", "open open open applied", idempotency=False)
    task, plan_id = planned(target)
    assert task.commit(plan_id).status == "unknown"
    assert task.commit(plan_id).status == "committed"
    assert target.steps.count("commit") == 1


def test_what_is_never_answered_stays_unknown_and_is_asked_for_again() -> None:
    target = Scripted("silence", "open", **PROMISED)
    task, plan_id = planned(target)
    for _ in range(2):
        outcome = task.commit(plan_id)
        assert (outcome.status, outcome.next_action) == ("unknown", "retry_same")
        with pytest.raises(OutcomeUnknown):
            task.plan("wiki", "edit", {"page": 1})
    assert target.steps.count("commit") <= 1 + len(QUICK.retry_delays)
    assert len(target.keys) == 1


def test_an_unknown_commit_is_not_sent_again_after_the_expiry() -> None:
    later = timedelta(0)
    target = Scripted("silence applied", "open open expired", key_retention_seconds=86_400)
    task, plan_id = planned(target, clock=lambda: now() + later)
    task.core.around.patience = replace(QUICK, commit=0)
    assert task.commit(plan_id).status == "unknown"
    later = timedelta(minutes=11)
    task.core.around.patience = replace(QUICK, commit=3)
    assert task.commit(plan_id).status == "expired"
    assert target.steps.count("commit") == 1


def test_an_unknown_commit_is_not_sent_again_when_its_key_may_be_forgotten() -> None:
    later = timedelta(0)
    target = Scripted("silence applied", "open open applied", key_retention_seconds=60)
    task, plan_id = planned(target, clock=lambda: now() + later)
    task.core.around.patience = replace(QUICK, commit=0)
    assert task.commit(plan_id).status == "unknown"
    later = timedelta(seconds=31)
    task.core.around.patience = replace(QUICK, commit=3)
    assert task.commit(plan_id).status == "committed"
    assert target.steps.count("commit") == 1


def test_what_could_not_be_sent_in_time_is_planned_again() -> None:
    later = timedelta(0)
    target = Scripted("nowhere")
    task, plan_id = planned(target, clock=lambda: now() + later)
    waiting = task.commit(plan_id)
    assert (waiting.status, waiting.next_action) == ("planned", "commit")
    later = timedelta(minutes=10)
    expired = task.commit(plan_id)
    assert expired.status == "expired"
    assert expired.successor.plan_id == "plan_2"


def test_a_partly_applied_plan_is_only_looked_at() -> None:
    target = Scripted("500", "partly_applied partly_applied applied", **PROMISED)
    task, plan_id = planned(target)
    assert task.commit(plan_id).next_action == "investigate"
    with pytest.raises(OutcomeUnknown):
        task.plan("wiki", "edit", {"page": 2})
    assert task.commit(plan_id).next_action == "investigate"
    assert task.commit(plan_id).status == "committed"
    assert target.steps.count("commit") == 1


def test_an_adapter_that_fails_leaves_its_commit_in_doubt() -> None:
    target = Scripted("raises applied", "open", **PROMISED)
    task, plan_id = planned(target)
    with pytest.raises(LookupError):
        task.commit(plan_id)
    with pytest.raises(OutcomeUnknown):
        task.plan("wiki", "edit", {"page": 1})
    assert task.commit(plan_id).status == "committed"
    assert len(target.keys) == 1


def test_the_end_of_a_task_drops_tokens_whatever_an_adapter_does() -> None:
    target = Scripted("raises", "raises", **PROMISED)
    task, plan_id = planned(target)
    with pytest.raises(LookupError):
        task.commit(plan_id)
    with pytest.raises(LookupError):
        task.end()
    state = task.core.known
    assert state is not None
    assert state.ended
    assert state.intents[0].plans[0].token is None


def test_a_write_counts_from_before_it_begins_until_after_its_end() -> None:
    target = Scripted("applied")
    guard = Guard(None, {"wiki": target}, patience=QUICK)
    task = guard.task("t")
    seen: list[Any] = []

    @guard.mutating("page/{number}")
    def edit(number: int) -> None:
        assert made is not None
        seen.append(task.commit(made.plan_id))

    made = task.plan("wiki", "edit", {"page": 1}).plan
    assert made is not None
    edit(1)
    assert seen[0].status == "stale"
    during = seen[0].successor
    assert task.commit(during.plan_id).status == "stale"
    assert "commit" not in target.steps
