"""What an agent says about its task over REST: it wrote something, or it is over (A-10, A-11)."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from audit.actors import CLOCK
from audit.models import Event
from plans import replanning
from plans.clock import clock
from plans.envelopes import PlanOut
from plans.lifecycle import Verb, transition
from plans.models import Agent, Intent, Plan, Replan, Task, Write
from plans.taskwork import mark_written
from tests.plans.api_calls import Api, dry_run, in_seconds, submission, without
from tests.plans.planning_target import PlanningTarget, Reply, Seen
from tests.plans.planning_target import dry_run as planned
from tests.plans.story import at_once

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("refund")]
OBJECT = "invoice/4412"


def submitted(api: Api, plan_id: str = "pl_1", task: str = "task-1", **plan: Any) -> Plan:
    body = submission(plan_id, task_id=task, plan=dry_run(plan_id, **plan))
    assert api.post("/plans", body).status_code == 201
    return Plan.objects.get(plan_id=plan_id)


def _covering(covers: list[str] | None) -> dict[str, Any]:
    """The member as it would be sent; None: not at all."""
    return {} if covers is None else {"covers": covers}


def follow(plan: Plan, *verbs: Verb) -> Plan:
    with transaction.atomic():
        for verb in verbs:
            transition(Plan.objects.locked_with_intent(plan.pk), verb, actor=CLOCK)
    plan.refresh_from_db()
    return plan


def in_flight(plan: Plan) -> Plan:
    follow(plan, Verb.VERIFY, Verb.APPROVE, Verb.START_ATTEMPT)
    plan.attempts.create(number=1, lease_until=clock() + timedelta(minutes=1))
    return plan


def wrote(api: Api, *objects: str, task: str = "task-1") -> dict[str, list[str]]:
    """The answer to a report, with only the IDs of its plans."""
    answer = api.post(f"/tasks/{task}/writes", {"objects": list(objects), "tool": "refund_line"})
    assert answer.status_code == 200, answer.content
    return names(answer.json())


def ended(api: Api, task: str = "task-1") -> dict[str, list[str]]:
    answer = api.post(f"/tasks/{task}/end", {"outcome": "done"})
    assert answer.status_code == 200, answer.content
    return names(answer.json())


def names(members: dict[str, Any]) -> dict[str, list[str]]:
    for plans in members.values():
        for plan in plans:
            PlanOut.model_validate(plan)
    return {name: [plan["plan_id"] for plan in plans] for name, plans in members.items()}


# ── writes ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("covers", "objects", "hit"),
    [
        ([OBJECT], [OBJECT], True),
        ([OBJECT, "customer/7"], ["order/1", "customer/7"], True),
        ([OBJECT], ["invoice/4413"], False),
        ([OBJECT], ["invoice/441"], False),
        ([OBJECT], ["*"], True),
        (None, ["order/1"], True),
        ([], ["order/1"], False),
        ([], ["*"], True),
    ],
)
def test_a_plan_is_stale_when_what_it_covers_was_written(
    api: Api, covers: list[str] | None, objects: list[str], hit: bool
) -> None:
    plan = submitted(api, **_covering(covers))
    follow(plan, Verb.VERIFY)
    expected = {"stale": ["pl_1"] if hit else [], "in_flight": []}
    assert wrote(api, *objects) == expected
    plan.refresh_from_db()
    assert plan.status == ("stale" if hit else "pending")
    assert Replan.objects.filter(plan=plan, cause="stale", status="queued").exists() is hit


def test_the_write_is_stored_and_in_the_trail(api: Api) -> None:
    wrote(api, OBJECT, "order/1")
    write = Write.objects.get()
    assert (write.task_id, write.objects_written, write.tool) == (
        *("task-1", [OBJECT, "order/1"], "refund_line"),
    )
    event = Event.objects.get(action="task.writes_reported")
    assert (event.actor_kind, event.agent, event.task_id) == ("agent", "support-agent", "task-1")
    assert event.details == {"objects": [OBJECT, "order/1"], "tool": "refund_line"}


@pytest.mark.parametrize("verbs", [(), (Verb.VERIFY,), (Verb.VERIFY, Verb.APPROVE)])
def test_every_open_plan_of_the_task_is_hit(api: Api, verbs: tuple[Verb, ...]) -> None:
    follow(submitted(api, "pl_1"), *verbs)
    follow(submitted(api, "pl_2"), *verbs)
    submitted(api, "pl_other", task="task-2")
    assert wrote(api, OBJECT) == {"stale": ["pl_1", "pl_2"], "in_flight": []}
    assert Plan.objects.get(plan_id="pl_other").status == "verifying"


def test_another_agents_task_of_the_same_name_is_another_task(api: Api, stranger: Api) -> None:
    submitted(stranger, "theirs")
    assert wrote(api, "*") == {"stale": [], "in_flight": []}
    assert Plan.objects.get().status == "verifying"


def test_a_plan_in_flight_is_only_named(api: Api) -> None:
    plan = in_flight(submitted(api))
    assert wrote(api, OBJECT) == {"stale": [], "in_flight": ["pl_1"]}
    plan.refresh_from_db()
    assert (plan.status, Replan.objects.count()) == ("committing", 0)


def test_a_commit_that_never_left_becomes_stale(api: Api) -> None:
    plan = follow(submitted(api), Verb.VERIFY, Verb.APPROVE, Verb.START_ATTEMPT)
    plan.attempts.create(number=1, outcome="not_sent", lease_until=clock())
    assert wrote(api, OBJECT) == {"stale": ["pl_1"], "in_flight": []}


@pytest.mark.parametrize(
    ("made", "covers", "status"),
    [
        (-60, [OBJECT], "stale"),
        (-60, ["invoice/9"], "verifying"),
        (-60, None, "stale"),
        (0, [OBJECT], "verifying"),
    ],
)
def test_a_plan_made_before_a_write_arrives_stale(
    api: Api, made: float, covers: list[str] | None, status: str
) -> None:
    """In seconds before the submission; the write was reported half a minute ago."""
    wrote(api, OBJECT)
    Write.objects.update(at=clock() - timedelta(seconds=30))
    plan = submitted(api, created_at=in_seconds(made), **_covering(covers))
    assert plan.status == status


def test_a_plan_without_an_age_is_as_old_as_its_arrival(api: Api) -> None:
    wrote(api, OBJECT)
    assert submitted(api).status == "verifying"


def test_a_write_of_another_task_does_not_count(api: Api) -> None:
    wrote(api, "*", task="task-2")
    assert submitted(api, created_at=in_seconds(-60)).status == "verifying"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"objects": [], "tool": "x"}, "invalid-field"),
        ({"objects": [OBJECT]}, "missing-field"),
        ({"tool": "x"}, "missing-field"),
        ({"objects": [""], "tool": "x"}, "invalid-field"),
        ({"objects": OBJECT, "tool": "x"}, "invalid-field"),
        ({"objects": [OBJECT], "tool": "x", "reads": []}, "unknown-field"),
    ],
)
def test_a_report_that_says_nothing_is_refused(api: Api, body: object, code: str) -> None:
    answer = api.post("/tasks/task-1/writes", body)
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert not Write.objects.exists()


@pytest.mark.parametrize("verb", ["writes", "end"])
@pytest.mark.parametrize("task", ["a b", "x" * 129, "t%C3%A4sk", "a%00"])
def test_a_task_with_another_kind_of_name_is_not_there(api: Api, verb: str, task: str) -> None:
    body = {"objects": ["*"], "tool": "x"} if verb == "writes" else {}
    assert api.post(f"/tasks/{task}/{verb}", body).status_code == 404
    assert not Write.objects.exists()
    assert not Task.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_report_and_a_fresh_plan_at_once_leave_no_stale_plan_open(
    support_agent: Agent, api: Api, planning: PlanningTarget
) -> None:
    """The server's plan arrives while a report, which cannot see it yet, waits for a lock."""
    other = submitted(api, "pl_1", covers=[OBJECT])
    intent = api.post("/intents", without(submission(), "plan")).json()["intent_id"]
    held = threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Plan.objects.locked(other.pk)
            held.set()
            time.sleep(1.0)

    def report() -> None:
        held.wait(5)
        mark_written(support_agent, "task-1", [OBJECT], "refund_line")

    def slowly(_: Seen) -> Reply:
        held.wait(5)
        time.sleep(0.4)
        plan = planned(created_at=in_seconds(-5))
        planning.knows(plan)
        return Reply(200, plan)

    planning.script["dry_run"] = slowly
    number = Replan.objects.get(intent=intent).pk
    results = at_once([hold, report, lambda: replanning.run(number) and None])
    assert results == [None, None, None]
    assert Plan.objects.get(intent=intent).status == "stale"


# ── the end ──────────────────────────────────────────────────────────────────────────────────


def test_the_end_abandons_what_is_open_and_destroys_tokens(api: Api) -> None:
    follow(submitted(api, "pl_1"), Verb.VERIFY)
    submitted(api, "pl_2")
    submitted(api, "pl_other", task="task-2")
    assert ended(api) == {"abandoned": ["pl_1", "pl_2"], "in_flight": []}
    for plan in Plan.objects.filter(task_id="task-1"):
        assert (plan.status, plan.token, plan.commit_body) == ("abandoned", None, None)
        assert plan.intent.closed_reason == "task_end"
    assert Plan.objects.get(plan_id="pl_other").status == "verifying"


def test_the_end_cancels_replans_that_wait(api: Api) -> None:
    plan = follow(submitted(api), Verb.VERIFY, Verb.REQUEST_CHANGES)
    assert ended(api) == {"abandoned": ["pl_1"], "in_flight": []}
    plan.refresh_from_db()
    assert (plan.status, Replan.objects.get().status) == ("changes_requested", "cancelled")
    assert Intent.objects.get().status == "abandoned"
    assert api.post("/replans/claim", {}).status_code == 204


def test_the_end_of_what_was_only_asked_for(api: Api) -> None:
    body = without(submission(), "plan")
    intent = api.post("/intents", body).json()["intent_id"]
    assert ended(api) == {"abandoned": [], "in_flight": []}
    assert api.get(f"/intents/{intent}").json()["status"] == "abandoned"


def test_a_plan_in_flight_is_named_and_the_target_decides(api: Api) -> None:
    plan = in_flight(submitted(api))
    assert ended(api) == {"abandoned": [], "in_flight": ["pl_1"]}
    plan.refresh_from_db()
    assert (plan.status, plan.token is None) == ("committing", False)
    assert Event.objects.filter(action="plan.abandon_noted").count() == 1


def test_a_task_that_never_planned_says_so(api: Api) -> None:
    assert ended(api) == {"abandoned": [], "in_flight": []}
    event = Event.objects.get(action="task.ended")
    assert event.details == {"outcome": "done", "plans": 0, "abandoned": 0}
    submitted(api, "pl_1", task="task-2")
    ended(api, "task-2")
    event = Event.objects.get(action="task.ended", task_id="task-2")
    assert event.details == {"outcome": "done", "plans": 1, "abandoned": 1}


def test_saying_it_again_changes_nothing(api: Api) -> None:
    submitted(api)
    ended(api)
    assert ended(api) == {"abandoned": [], "in_flight": []}
    assert Event.objects.filter(action="task.ended").count() == 1


def test_nothing_comes_after_the_end(api: Api, stranger: Api) -> None:
    ended(api)
    wish = without(submission("pl_1"), "plan")
    for path, body in (
        ("/plans", submission("pl_1")),
        ("/intents", wish),
        ("/tasks/task-1/writes", {"objects": ["*"], "tool": "x"}),
    ):
        answer = api.post(path, body)
        assert (answer.status_code, answer.json()["code"]) == (409, "task-ended")
        assert answer.json()["next_action"] == "stop"
    assert not Plan.objects.exists()
    # A task belongs to its agent.
    assert stranger.post("/plans", submission("pl_1")).status_code == 201
