"""PostgreSQL and Valkey frozen, emptied, killed and restarted, and clocks that are wrong.

One file, because all of it shares one start: parallel test runs keep a file together.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Final

import httpx
import pytest
import redis

from tests.faults.scripted_target import ScriptedTarget, hang
from tests.journeys.people import Person, is_
from tests.journeys.product import ROOT, eventually
from tests.outages.cast import StageAgent
from tests.outages.clocks import pg_clock_off
from tests.outages.stage import Stage
from tests.outages.stories import Withheld, applied_once, sent

type Break = Callable[[Stage], None]
# B-5: the person's answer, and the commit by the sweep, in seconds.
ANSWER, SWEPT = 2.0, 10.0
# FM-30: how long a worker may take until it hears the bell again.
HEARS_AGAIN: Final = 60.0


@pytest.fixture(autouse=True, scope="module")
def _supervised(stage: Stage) -> Iterator[None]:
    """A worker that loses its broker in the middle of a task ends, and is started again."""
    with stage.supervised("worker"):
        yield


def flush(stage: Stage) -> None:
    """Every doorbell is gone."""
    with closing(redis.Redis.from_url(stage.cluster.urls()["valkey"])) as valkey:
        assert valkey.flushall()


def restart_valkey(stage: Stage) -> None:
    """Killed, and started again with nothing in it."""
    stage.cluster.restart(("valkey",), immediate=True)


@pytest.mark.fm(28)
def test_a_broker_that_never_answers_costs_the_person_nothing(
    stage: Stage, agent: StageAgent, ada: Person, target: ScriptedTarget
) -> None:
    """Frozen, it takes connections and says nothing: only timeouts help."""
    plan = agent.fresh()
    form = ada.form(plan)
    pid = stage.cluster.status()["valkey"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        clicked = time.monotonic()
        assert ada.decide(plan, form=form).status_code == httpx.codes.SEE_OTHER
        assert time.monotonic() - clicked < ANSWER
        agent.wait(plan, is_("committed"), SWEPT - (time.monotonic() - clicked))
    finally:
        os.kill(pid, signal.SIGCONT)
    assert "doorbell.failed" in stage.said("web")
    assert applied_once(target, plan)


@pytest.mark.fm(29)
@pytest.mark.parametrize("lose", [flush, restart_valkey])
def test_a_doorbell_that_is_lost_before_it_is_heard_costs_seconds(
    stage: Stage, agent: StageAgent, ada: Person, target: ScriptedTarget, lose: Break
) -> None:
    """The worker is away until the sweep has done it; then it finds nothing to do."""
    plan = agent.fresh()
    with stage.frozen("worker"):
        with stage.frozen("sweeper"):
            clicked = time.monotonic()
            ada.approve_now(plan)
            lose(stage)
        agent.wait(plan, is_("committed"), SWEPT - (time.monotonic() - clicked))
    assert (sent(target, plan), applied_once(target, plan)) == (["1"], True)


@pytest.mark.fm(30)
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_a_worker_whose_broker_was_killed_hears_the_bell_again(
    stage: Stage, agent: StageAgent, ada: Person, target: ScriptedTarget, busy: bool
) -> None:
    """By itself, or it ends and its supervisor starts it; the sweeper is frozen and no help."""
    held, later, gate = agent.fresh(), agent.fresh(), threading.Event()
    stage.patience(20)
    with stage.frozen("sweeper"):
        if busy:
            target.play(hang(applies=True, until=gate))
            ada.approve_now(held)
            assert eventually(lambda: bool(sent(target, held)), 10)
        stage.cluster.stop(("valkey",), immediate=True)
        assert stage.health("broker") == ("degraded", False)
        gate.set()
        if busy:
            agent.wait(held, is_("committed"), 20)
        stage.cluster.start(("valkey",))
        began = time.monotonic()
        ada.approve_now(later)
        # Whatever became of the bell that the page rang, this one is in the new Valkey.
        stage.ring(stage.pk(later), times=1)
        agent.wait(later, is_("committed"), HEARS_AGAIN - (time.monotonic() - began))
    stage.patience(3)
    assert applied_once(target, later)
    if busy:
        assert (stage.attempts(held), sent(target, held)) == (["applied"], ["1"])
        assert applied_once(target, held)


@pytest.mark.fm(31)
@pytest.mark.parametrize(
    "lock",
    [
        pytest.param("SELECT FROM plans_plan WHERE plan_id = %s FOR UPDATE", id="nothing written"),
        pytest.param("LOCK audit_event IN SHARE MODE", id="the decision written"),
    ],
)
def test_a_crash_of_postgresql_under_an_approval_leaves_it_undone(
    stage: Stage, agent: StageAgent, ada: Person, target: ScriptedTarget, lock: str
) -> None:
    """The person hears 503 and when to come back; the same click again is safe."""
    plan = agent.fresh()
    form = ada.form(plan)
    values = [plan["plan_id"]] if "%s" in lock else []
    with ThreadPoolExecutor(1) as browser, stage.locked(lock, *values):
        click = browser.submit(ada.decide, plan, form=form)
        assert eventually(lambda: stage.waits_for_lock("web"), 10)
        stage.cluster.restart(("postgres",), immediate=True)
        answer = click.result(30)
    stage.settled()
    assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
    assert (agent.read(plan)["status"], stage.decisions(plan)) == ("pending", 0)
    assert "decision.recorded" not in stage.actions(plan)
    assert ada.decide(plan, form=form).status_code == httpx.codes.SEE_OTHER
    agent.wait(plan, is_("committed"), 30)
    assert (stage.decisions(plan), applied_once(target, plan)) == (1, True)


@pytest.mark.fm(31)
def test_an_approval_that_was_answered_survives_the_crash(
    stage: Stage, agent: StageAgent, ada: Person, target: ScriptedTarget
) -> None:
    plan = agent.fresh()
    form = ada.form(plan)
    with stage.frozen("worker", "sweeper"):
        assert ada.decide(plan, form=form).status_code == httpx.codes.SEE_OTHER
        stage.cluster.restart(("postgres",), immediate=True)
        stage.settled()
        assert (agent.read(plan)["status"], stage.decisions(plan)) == ("approved", 1)
        assert ada.decide(plan, form=form).status_code == httpx.codes.SEE_OTHER
    agent.wait(plan, is_("committed"), 30)
    assert (stage.decisions(plan), applied_once(target, plan)) == (1, True)


@pytest.mark.fm(32)
def test_an_answer_in_hand_survives_the_crash_of_postgresql(
    stage: Stage, agent: StageAgent, ada: Person, target: ScriptedTarget
) -> None:
    """The same worker writes it as soon as it can: nothing is sent again."""
    plan = agent.fresh()
    withheld = Withheld(stage, plan)
    target.play(withheld.step)
    ada.approve_now(plan)
    assert eventually(lambda: stage.waits_for_lock("worker") or stage.waits_for_lock("sweeper"), 10)
    stage.cluster.restart(("postgres",), immediate=True)
    withheld.release()
    stage.settled()
    agent.wait(plan, is_("committed"), 30)
    assert (stage.attempts(plan), sent(target, plan)) == (["applied"], ["1"])
    assert applied_once(target, plan)
    assert stage.actions(plan).count("plan.committed") == 1


@pytest.mark.fm(33)
def test_nothing_starts_where_commits_may_be_forgotten(stage: Stage) -> None:
    """Each process by itself: web, worker, sweeper, and the preparation of a release."""
    commands = {
        "web-unsafe": stage.web(stage.spare_port),
        "worker-unsafe": stage.commands["worker"],
        "sweeper-unsafe": stage.commands["sweeper"],
        "manage-unsafe": ["manage.py", "prepare"],
    }
    stage.sql("ALTER DATABASE countersign SET synchronous_commit = off")
    try:
        started = {name: stage.popen(name, command) for name, command in commands.items()}
        codes = {name: process.wait(60) for name, process in started.items()}
    finally:
        stage.sql("ALTER DATABASE countersign RESET synchronous_commit")
        for process in started.values():
            process.kill()
    assert 0 not in codes.values()
    for name in commands:
        assert "PostgreSQL runs with synchronous_commit=off." in stage.said(name), name


@pytest.mark.fm(53)
def test_a_server_that_turned_read_only_takes_no_decision(
    stage: Stage, agent: StageAgent, ada: Person, target: ScriptedTarget
) -> None:
    """As an old primary does. Nobody ends because of it, and the same click works afterwards."""
    plan = agent.fresh()
    form = ada.form(plan)
    with stage.read_only():
        answer = ada.decide(plan, form=form)
        assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
        assert eventually(lambda: '"fault": "InternalError"' in stage.said("sweeper"), 15)
    stage.settled()
    assert (agent.read(plan)["status"], stage.decisions(plan)) == ("pending", 0)
    assert ada.decide(plan, form=form).status_code == httpx.codes.SEE_OTHER
    agent.wait(plan, is_("committed"), 30)
    assert (stage.decisions(plan), applied_once(target, plan)) == (1, True)
    assert [stage.processes[name].poll() for name in ("web", "sweeper")] == [None, None]


@pytest.mark.fm(35)
def test_clocks_of_our_processes_decide_nothing(
    stage: Stage, agent: StageAgent, ada: Person, target: ScriptedTarget
) -> None:
    """Ten minutes ahead and ten minutes behind: alive is alive, dead is dead."""
    path = str(ROOT / "tests" / "outages" / "shifted")
    stage.restart({"web": 600, "worker": -600, "sweeper": -600}, PYTHONPATH=path)
    alive, dying = agent.fresh(lives=300), agent.fresh(lives=5)
    form = ada.form(dying)
    assert 200_000 < alive["decide_in_ms"] < 300_000
    ada.approve_now(alive)
    agent.wait(alive, is_("committed"), 15)
    assert applied_once(target, alive)
    assert agent.wait(dying, is_("expired"), 15)["expires_at"] == dying["expires_at"]
    assert ada.decide(dying, form=form).status_code == httpx.codes.GONE
    assert sent(target, dying) == []
    assert 0 <= stage.late(dying, "plan.expired") < 10


@pytest.mark.fm(36)
def test_what_has_expired_stays_expired_when_postgresqls_clock_steps_back(
    stage: Stage, agent: StageAgent, ada: Person, target: ScriptedTarget
) -> None:
    """An hour, as after a bad time server: the trail keeps its order, and its seals hold."""
    plan = agent.fresh(lives=5)
    form = ada.form(plan)
    agent.wait(plan, is_("expired"), 15)
    with pg_clock_off(stage, hours=-1):
        stage.settled()
        assert stage.health("clock") == ("unavailable", False)
        assert ada.decide(plan, form=form).status_code == httpx.codes.GONE
        other = agent.fresh()
        ada.approve_now(other)
        agent.wait(other, is_("committed"), 15)
        time.sleep(1)
        assert agent.read(plan)["status"] == "expired"
    stage.settled()
    assert stage.actions(plan).count("plan.expired") == 1
    assert (sent(target, plan), applied_once(target, other)) == ([], True)
    assert stage.actions(other)[-2:] == ["attempt.closed", "plan.committed"]
    ids = "SELECT id, at FROM audit_event WHERE plan_id = %s AND action = %s"
    (expired,) = stage.sql(ids, plan["plan_id"], "plan.expired")
    (committed,) = stage.sql(ids, other["plan_id"], "plan.committed")
    assert (committed["id"] > expired["id"], committed["at"] < expired["at"]) == (True, True)
    assert eventually(stage.trail_verifies, 30)
