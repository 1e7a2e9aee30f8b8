"""Reading plans and intents over REST (A-5…A-8, A-12)."""

from __future__ import annotations

import json
import uuid

import pytest
from django.contrib.auth.models import User

from approvals.models import Decision
from plans.envelopes import IntentOut, PlanOut
from plans.lifecycle import Verb
from plans.models import Intent, Plan, Replan
from tests.plans.api_calls import TOKEN, Api, action, dry_run, submission, without
from tests.plans.ways import VERBS, follow

pytestmark = pytest.mark.django_db


def test_the_tag_stands_for_everything_but_the_clock(api: Api, plan: Plan) -> None:
    first = api.get("/plans/billing/pl_1")
    second = api.get("/plans/billing/pl_1")
    assert first["ETag"] == second["ETag"]
    assert first.json()["server_time"] != second.json()["server_time"]
    follow(plan, Verb.VERIFY)
    assert api.get("/plans/billing/pl_1")["ETag"] != first["ETag"]


@pytest.mark.parametrize("form", ["{}", "W/{}", '"another", {}', "*"])
def test_whoever_has_it_is_told_so(api: Api, plan: Plan, form: str) -> None:
    tag = api.get("/plans/billing/pl_1")["ETag"]
    answer = api.get("/plans/billing/pl_1", If_None_Match=form.format(tag), Prefer="wait=25")
    assert (answer.status_code, answer.content, answer["ETag"]) == (304, b"", tag)
    assert answer["Cache-Control"] == "private, no-cache"


@pytest.mark.parametrize("form", ['"another"', "junk", "W/"])
def test_another_tag_gets_the_plan(api: Api, plan: Plan, form: str) -> None:
    assert api.get("/plans/billing/pl_1", If_None_Match=form).status_code == 200


WORDS = {
    "verifying": "wait",
    "pending": "wait",
    "approved": "wait",
    "committing": "wait",
    "unknown": "wait",
    "unresolved": "investigate",
    "committed": "done",
    "conflicted": "replanning",
    "failed": "stop",
    "rejected": "stop",
    "changes_requested": "replan",
    "expired": "replanning",
    "stale": "replanning",
    "superseded": "stop",
    "abandoned": "stop",
    "mismatched": "fix_request",
}


@pytest.mark.parametrize("status", VERBS)
def test_every_status_is_readable_and_has_its_word(api: Api, plan: Plan, status: str) -> None:
    follow(plan, *VERBS[status])
    answer = api.get("/plans/billing/pl_1")
    assert answer.status_code == 200
    members = answer.json()
    PlanOut.model_validate(members)
    assert (members["status"], members["next_action"]) == (status, WORDS[status])
    is_open = status in ("verifying", "pending", "approved")
    assert (members["decide_in_ms"] is not None) is is_open
    assert (members["replan"] is not None) is (
        status in ("conflicted", "expired", "stale", "changes_requested")
    )


@pytest.mark.parametrize(
    ("intent", "replan", "word"),
    [
        ("open", {"mode": "agent"}, "replan"),
        ("open", {"status": "parked"}, "replan"),
        ("open", {"status": "leased"}, "replanning"),
        ("settled", {"status": "done"}, "done"),
        ("abandoned", {"status": "cancelled"}, "stop"),
        ("failed", {"status": "done"}, "stop"),
    ],
)
def test_what_a_dead_plan_asks_for_depends_on_its_replan(
    api: Api, plan: Plan, intent: str, replan: dict[str, str], word: str
) -> None:
    follow(plan, Verb.EXPIRE)
    Replan.objects.update(**replan)
    Intent.objects.update(status=intent)
    assert api.get("/plans/billing/pl_1").json()["next_action"] == word


def test_it_names_what_replaced_it(api: Api, plan: Plan) -> None:
    follow(plan, Verb.VERIFY)
    api.post("/plans", submission("pl_2", replaces="pl_1"))
    old, new = api.get("/plans/billing/pl_1").json(), api.get("/plans/billing/pl_2").json()
    assert (old["status"], old["replaced_by"], old["next_action"]) == ("superseded", "pl_2", "stop")
    assert (new["replaces"], new["revision"], new["intent_id"]) == ("pl_1", 2, old["intent_id"])


def test_it_tells_the_last_decision(api: Api, plan: Plan, ada: User) -> None:
    plan = follow(plan, Verb.VERIFY)
    Decision.objects.create(
        plan=plan, round=1, person=ada, verdict="reject", note="not twice", shown_digest="0" * 64
    )
    decision = api.get("/plans/billing/pl_1").json()["decision"]
    assert without(decision, "at") == {"verdict": "reject", "note": "not twice", "by": "ada"}


def test_it_tells_the_conflict_and_the_problem(api: Api, plan: Plan) -> None:
    conflict = {
        "changed": [{"path": "refunded_cents", "planned": 0, "current": 20000}],
        "plan_created_at": "2026-03-14T09:41:12Z",
    }
    problem = {"status": 409, "code": "state-changed", "detail": "moved"}
    follow(plan, *VERBS["conflicted"][:-1])
    follow(plan, Verb.CONFLICT, conflict=conflict, problem=problem, attempts_made=1)
    commit = api.get("/plans/billing/pl_1").json()["commit"]
    assert (commit["conflict"], commit["problem"], commit["attempts"]) == (conflict, problem, 1)


def test_an_intent_is_opened_and_read(api: Api) -> None:
    body = without(submission(), "plan") | {"summary": "Refund", "reason": "A complaint"}
    answer = api.post("/intents", body)
    assert answer.status_code == 201
    members = answer.json()
    IntentOut.model_validate(members)
    assert set(members) == set(IntentOut.model_fields)
    assert (members["status"], members["next_action"]) == ("open", "wait")
    assert members["asked"]["inputs"] == body["inputs"]
    assert (members["plan"], members["changed"]) == (None, None)
    assert members["replan"]["cause"] == "first"
    path = answer["Location"].partition("/api/v1")[2]
    again = api.get(path)
    assert again["ETag"] == answer["ETag"]
    assert api.get(path, If_None_Match=again["ETag"]).status_code == 304
    assert api.get(path.upper()).status_code == 404


def test_an_intent_tells_what_changed(api: Api, plan: Plan) -> None:
    changed = [{"path": "refunded_cents", "planned": 0, "current": 20000}]
    follow(plan, *VERBS["conflicted"][:-1])
    follow(plan, Verb.CONFLICT, conflict={"changed": changed, "plan_created_at": None})
    after = [action(**{"from": 20000})]
    body = submission("pl_2", replaces="pl_1", plan=dry_run("pl_2", actions=after))
    assert api.post("/plans", body).status_code == 201
    members = api.get(f"/intents/{plan.intent_id}").json()
    IntentOut.model_validate(members)
    assert members["plan"]["plan_id"] == "pl_2"
    assert members["planned"] == after
    assert members["changed"] == {
        "replaces": "pl_1",
        "cause": "conflicted",
        "conflict": changed,
        "before": [action()],
        "after": after,
    }
    assert TOKEN not in json.dumps(members)


def test_an_intent_of_a_committed_plan_is_committed(api: Api, plan: Plan) -> None:
    follow(plan, *VERBS["committed"])
    members = api.get(f"/intents/{plan.intent_id}").json()
    assert (members["status"], members["next_action"]) == ("committed", "done")


def test_an_unknown_intent_is_not_there(api: Api) -> None:
    assert api.get(f"/intents/{uuid.uuid4()}").status_code == 404
