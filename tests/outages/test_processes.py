"""Workers and sweepers that are killed, frozen, doubled and drained: one apply, told once.

One file, because all of it shares one start: parallel test runs keep a file together.
"""

from __future__ import annotations

import signal
import threading
import time
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import pytest
import redis

from plans.models import Target
from plans.status import Status
from tests.faults.scripted_target import ScriptedTarget, apply, drip, hang
from tests.journeys.people import Person, Plan, is_
from tests.journeys.product import eventually
from tests.outages.cast import StageAgent, clogged
from tests.outages.every_status import EveryStatus
from tests.outages.stage import THREADS, Stage
from tests.outages.stories import Withheld, applied_once, sent

# FM-25: the lease or the sweep, whichever is later; Celery's own path takes longer than either.
RECOVERY_SECONDS: Final = 65.0


@dataclass(frozen=True, slots=True)
class Killed:
    """Three plans in the hands of one worker, and the moment of its death (monotonic)."""

    plans: dict[str, Plan]
    at: float


@pytest.fixture(scope="module")
def killed(stage: Stage, agent: StageAgent, ada: Person, target: ScriptedTarget) -> Killed:
    """SIGKILL of a worker that connects for one plan, waits for one, and has one's answer."""
    answered, waiting, connecting = (agent.fresh() for _ in range(3))
    withheld = Withheld(stage, answered)
    with stage.frozen("sweeper"):
        target.play(withheld.step)
        ada.approve_now(answered)
        assert eventually(lambda: stage.waits_for_lock("worker"), 10)
        target.play(hang(applies=True))
        ada.approve_now(waiting)
        assert eventually(lambda: bool(sent(target, waiting)), 10)
        with clogged(target):
            ada.approve_now(connecting)
            assert eventually(lambda: stage.attempts(connecting) == ["open"], 10)
            assert stage.children("worker") == []
            stage.end("worker", signal.SIGKILL)
            at = time.monotonic()
        withheld.release()
    plans = {"connecting": connecting, "waiting": waiting, "answered": answered}
    assert [stage.attempts(plan) for plan in plans.values()] == [["open"]] * 3
    assert [sent(target, plan) for plan in plans.values()] == [[], ["1"], ["1"]]
    target.aside |= {plan["plan_id"] for plan in plans.values()}
    stage.start("worker")
    return Killed(plans, at)


@pytest.mark.fm(8)
@pytest.mark.usefixtures("killed")
def test_dripping_answers_hold_no_thread_longer_than_the_deadline(
    stage: Stage, agent: StageAgent, ada: Person, target: ScriptedTarget
) -> None:
    """Every thread of the worker has one; then it takes the next plan."""
    assert Target._meta.get_field("total_timeout_seconds").default == 45
    dripping = [agent.fresh() for _ in range(THREADS)]
    target.play(*[drip(applies=True)] * THREADS)
    with stage.frozen("sweeper"):
        for plan in dripping:
            ada.approve_now(plan)
        assert eventually(lambda: all(sent(target, plan) for plan in dripping), 10)
        next_one = agent.fresh()
        ada.approve_now(next_one)
        agent.wait(next_one, is_("committed"), 20)
    for plan in dripping:
        agent.wait(plan, is_("committed"), 30)
        assert applied_once(target, plan)
        assert stage.attempts(plan) == ["unknown", "applied"]
        first = stage.events(plan, "attempt.closed")[0]["details"]
        assert first["reason"] == "deadline"
        assert 2_000 < first["elapsed_ms"] < 4_000


@pytest.mark.fm(25)
@pytest.mark.usefixtures("killed")
def test_a_worker_that_is_told_to_stop_brings_its_commit_to_an_end(
    stage: Stage, agent: StageAgent, ada: Person, target: ScriptedTarget
) -> None:
    """SIGTERM: no second attempt, nothing unknown."""
    plan = agent.fresh()
    target.play(hang(applies=True, until=(gate := threading.Event())))
    with stage.frozen("sweeper"):
        ada.approve_now(plan)
        assert eventually(lambda: bool(sent(target, plan)), 10)
        threading.Timer(0.7, gate.set).start()
        assert stage.end("worker", signal.SIGTERM) == 0
    stage.start("worker")
    assert agent.read(plan)["status"] == "committed"
    assert (stage.attempts(plan), applied_once(target, plan)) == (["applied"], True)


@pytest.mark.fm(51)
@pytest.mark.usefixtures("killed")
def test_two_sweepers_without_a_worker_commit_each_plan_once(
    stage: Stage, agent: StageAgent, ada: Person, target: ScriptedTarget
) -> None:
    stage.commands["sweeper-two"] = stage.commands["sweeper"]
    stage.start("sweeper-two")
    plans = [agent.fresh() for _ in range(6)]
    with stage.frozen("worker"):
        for plan in plans:
            ada.approve_now(plan)
        for plan in plans:
            agent.wait(plan, is_("committed"), 20)
    stage.end("sweeper-two")
    assert [sent(target, plan) for plan in plans] == [["1"]] * len(plans)
    assert all(applied_once(target, plan) for plan in plans)


@pytest.mark.fm(56)
@pytest.mark.usefixtures("killed")
@pytest.mark.parametrize("where", ["before the first byte", "after the request"])
def test_a_worker_that_thaws_after_its_lease_was_stolen_changes_nothing(
    stage: Stage, agent: StageAgent, ada: Person, target: ScriptedTarget, where: str
) -> None:
    """SIGSTOP, the thief commits under the same key, SIGCONT: the late answer is only recorded."""
    plan = agent.fresh()
    if where == "after the request":
        target.play(hang(applies=True), apply)
    with stage.frozen("sweeper"):
        if where == "after the request":
            ada.approve_now(plan)
            assert eventually(lambda: bool(sent(target, plan)), 10)
            stage.processes["worker"].send_signal(signal.SIGSTOP)
        else:
            with clogged(target):
                ada.approve_now(plan)
                assert eventually(lambda: stage.attempts(plan) == ["open"], 10)
                stage.processes["worker"].send_signal(signal.SIGSTOP)
        frozen = time.monotonic()
        stage.lapse(plan)
    agent.wait(plan, is_("committed"), 20)
    time.sleep(max(0.0, frozen + 3.2 - time.monotonic()))
    stage.processes["worker"].send_signal(signal.SIGCONT)
    assert eventually(lambda: "attempt.late_answer" in stage.actions(plan), 10)
    (late,) = stage.events(plan, "attempt.late_answer")
    early = where == "before the first byte"
    details = {"number": 1, "outcome": "not_sent" if early else "unknown"}
    assert late["details"] == late["details"] | details
    assert sent(target, plan) == (["2"] if early else ["1", "2"])
    assert stage.attempts(plan) == ["unknown", "applied"]
    assert applied_once(target, plan)
    assert stage.actions(plan).count("plan.committed") == 1


@pytest.mark.parametrize(
    "held",
    [
        pytest.param("connecting", marks=pytest.mark.fm(22)),
        pytest.param("waiting", marks=pytest.mark.fm(23)),
        pytest.param("answered", marks=pytest.mark.fm(24)),
    ],
)
@pytest.mark.fm(25)
def test_what_a_killed_worker_had_in_hand_is_settled_by_the_same_key(
    stage: Stage, agent: StageAgent, target: ScriptedTarget, killed: Killed, held: str
) -> None:
    """By the lapse of its lease; Celery still holds the task back when it is over."""
    plan = agent.wait(killed.plans[held], is_("committed"), RECOVERY_SECONDS)
    (committed,) = stage.events(plan, "plan.committed")
    assert time.monotonic() - committed["age"] - killed.at < RECOVERY_SECONDS
    assert stage.attempts(plan) == ["unknown", "applied"]
    assert sent(target, plan) == (["2"] if held == "connecting" else ["1", "2"])
    assert applied_once(target, plan)
    assert not plan["commit"]["applied_out_of_band"]
    with closing(redis.Redis.from_url(stage.cluster.urls()["valkey"])) as valkey:
        assert valkey.hlen("unacked") >= len(killed.plans)


@pytest.mark.fm(26, 27)
@pytest.mark.usefixtures("killed")
def test_copies_of_a_task_end_without_a_call(
    stage: Stage, agent: StageAgent, ada: Person, target: ScriptedTarget
) -> None:
    """Seven at once, and the broker loses patience after a second with the one that works."""
    stage.commands["worker"] = stage.worker("tests.outages.hasty", "hasty")
    stage.end("worker")
    stage.start("worker")
    stage.patience(20)
    plan = agent.fresh()
    target.play(hang(applies=True, until=(gate := threading.Event())))
    ada.approve_now(plan)
    copy = f"begins [{stage.pk(plan)}]"
    stage.ring(stage.pk(plan), times=6)
    try:
        assert eventually(lambda: bool(sent(target, plan)), 10)
        assert eventually(lambda: stage.said("worker").count(copy) > 7, 9), "it was brought back"
        assert (sent(target, plan), stage.attempts(plan)) == (["1"], ["open"])
    finally:
        gate.set()
    agent.wait(plan, is_("committed"), 10)
    assert (stage.attempts(plan), applied_once(target, plan)) == (["applied"], True)
    stage.patience(3)


@pytest.mark.fm(52)
@pytest.mark.usefixtures("killed")
def test_a_deploy_drains_with_plans_in_every_status(
    stage: Stage, agent: StageAgent, ada: Person, target: ScriptedTarget
) -> None:
    """SIGTERM to everything, then everything again: what was in flight had come to its end."""
    every = EveryStatus(stage, agent, ada)
    assert every.statuses() == {str(status): str(status) for status in Status}
    threading.Timer(0.7, every.gate.set).start()
    assert set(stage.drain().values()) <= {0, -signal.SIGTERM}
    assert not any("open" in stage.attempts(plan) for plan in every.plans.values())
    stage.commands["worker"] = stage.worker("config.celery", "worker")
    stage.start("web", "worker", "sweeper")
    after = {str(status): str(status) for status in Status} | {"committing": "committed"}
    assert every.statuses() == after
    assert stage.attempts(every.plans[Status.COMMITTING]) == ["applied"]
    every.mend()
    ada.approve_now(every.plans[Status.PENDING])
    for status in (Status.PENDING, Status.APPROVED, Status.UNKNOWN):
        agent.wait(every.plans[status], is_("committed"))
    agent.wait(every.plans[Status.VERIFYING], is_("pending"))
    after |= dict.fromkeys(("pending", "approved", "unknown"), "committed")
    assert every.statuses() == after | {"verifying": "pending"}
    assert eventually(stage.trail_verifies, 30)
    for status, plan in every.plans.items():
        applied = every.statuses()[status] == "committed"
        assert target.applications.count(plan["plan_id"]) == applied, status
