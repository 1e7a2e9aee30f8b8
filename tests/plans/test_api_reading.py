"""Reading plans and intents over REST (A-5…A-8, A-12)."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import SuspiciousOperation
from django.db import InterfaceError, OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext

from approvals.models import Decision
from audit.actors import CLOCK
from plans import listing
from plans.clock import clock
from plans.envelopes import IntentOut, PlanOut, PlanPage
from plans.errors import NotFound
from plans.lifecycle import Verb, transition
from plans.models import Agent, Intent, Operation, Plan, Replan
from tests.plans.api_calls import TOKEN, Api, action, dry_run, submission, without

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(api_key: str, refund: Operation) -> Api:
    return Api(api_key)


@pytest.fixture
def plan(api: Api) -> Plan:
    assert api.post("/plans", submission()).status_code == 201
    return Plan.objects.get()


@pytest.fixture
def stranger(dana: User, make_api_key: Callable[..., str], refund: Operation) -> Api:
    agent = Agent.objects.create(name="other-agent", owner=dana, rate_tokens=600)
    return Api(make_api_key(agent))


def follow(plan: Plan, *verbs: Verb, **changes: Any) -> Plan:
    with transaction.atomic():
        for verb in verbs:
            plan = transition(Plan.objects.locked(plan.pk), verb, actor=CLOCK, **changes)
    return plan


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


VERBS: dict[str, tuple[Verb, ...]] = {
    "verifying": (),
    "pending": (Verb.VERIFY,),
    "approved": (Verb.VERIFY, Verb.APPROVE),
    "committing": (Verb.VERIFY, Verb.APPROVE, Verb.START_ATTEMPT),
    "unknown": (Verb.VERIFY, Verb.APPROVE, Verb.START_ATTEMPT, Verb.LOSE_TRACK),
    "unresolved": (Verb.VERIFY, Verb.APPROVE, Verb.START_ATTEMPT, Verb.LOSE_TRACK, Verb.GIVE_UP),
    "committed": (Verb.VERIFY, Verb.APPROVE, Verb.START_ATTEMPT, Verb.COMMIT),
    "conflicted": (Verb.VERIFY, Verb.APPROVE, Verb.START_ATTEMPT, Verb.CONFLICT),
    "failed": (Verb.VERIFY, Verb.APPROVE, Verb.START_ATTEMPT, Verb.FAIL),
    "rejected": (Verb.VERIFY, Verb.REJECT),
    "changes_requested": (Verb.VERIFY, Verb.REQUEST_CHANGES),
    "expired": (Verb.EXPIRE,),
    "stale": (Verb.MARK_STALE,),
    "superseded": (Verb.SUPERSEDE,),
    "abandoned": (Verb.ABANDON,),
    "mismatched": (Verb.MISMATCH,),
}
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


# Not yours is not there


def test_a_stranger_finds_nothing(stranger: Api, plan: Plan) -> None:
    there = stranger.get("/plans/billing/pl_1")
    nowhere = stranger.get("/plans/billing/pl_2")
    assert there.status_code == nowhere.status_code == 404
    gone = {"instance", "server_time"}
    assert without(there.json(), *gone) == without(nowhere.json(), *gone)
    assert stranger.get("/plans").json() == {"items": [], "next": None}
    assert stranger.get(f"/intents/{plan.intent_id}").status_code == 404
    body = {"reason": "other"}
    assert stranger.post("/plans/billing/pl_1/abandonment", body).status_code == 404
    assert Plan.objects.get().status == "verifying"


@pytest.mark.parametrize(
    "path",
    [
        "/plans/billing/pl_1/",
        "/plans//billing/pl_1",
        "/plans/billing//pl_1",
        "//plans",
        "/plans/",
        "/plans/billing/pl_1%00",
        "/plans/bil%00ling/pl_1",
        "/plans/billing/pl_1;x=1",
        "/plans/billing/PL_1",
        "/plans/Billing/pl_1",
        "/PLANS/billing/pl_1",
        "/plans/billing/..",
        "/plans/billing/.",
        "/plans/billing/%2e%2e",
        "/plans/billing/pl%201",
        "/plans/billing/pl_1%0a",
        "/plans/billing/%ff",
        "/plans/billing/pl_1/decision",
        "/plans/billing/pl_%D0%B0",
        "/intents/1",
        "/intents/%00",
        "/intents/{00000000-0000-0000-0000-000000000000}",
        "/intents/00000000000000000000000000000000",
        "/nothing",
        "",
        "/",
    ],
)  # BI-29, BI-47
def test_a_path_trick_is_never_another_route(api: Api, plan: Plan, path: str) -> None:
    answer = api.get(path)
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
    assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/plans/billing/pl_1", "GET"),
        ("PUT", "/plans/billing/pl_1", "GET"),
        ("GET", "/plans/billing/pl_1/abandonment", "POST"),
        ("PATCH", "/plans", "GET, POST"),
        ("OPTIONS", "/intents", "POST"),
    ],
)
def test_another_method_is_a_problem_too(
    api: Api, plan: Plan, method: str, path: str, allowed: str
) -> None:
    answer = api.client.generic(method, f"/api/v1{path}", headers=api.headers)
    assert (answer.status_code, answer.json()["code"]) == (405, "method-not-allowed")
    assert sorted(answer["Allow"].split(", ")) == allowed.split(", ")


@pytest.mark.parametrize("override", ["X-HTTP-Method-Override", "X-Method-Override"])
def test_no_header_overrides_the_method(api: Api, plan: Plan, override: str) -> None:  # BI-43
    headers = api.headers | {override: "POST"}
    path = "/api/v1/plans/billing/pl_1/abandonment?_method=post"
    assert api.client.get(path, headers=headers).status_code == 405
    assert Plan.objects.get().status == "verifying"


# Lists


@pytest.fixture
def seven(api: Api) -> list[str]:
    names = [f"pl_{n}" for n in range(7)]
    for n, name in enumerate(names):
        api.post("/plans", submission(name, task_id=f"task-{n % 2}"))
    return names[::-1]


def names(page: Any) -> list[str]:
    assert page.status_code == 200, page.content
    return [item["plan_id"] for item in page.json()["items"]]


def test_pages_are_newest_first_and_miss_nothing(api: Api, seven: list[str]) -> None:
    found: list[str] = []
    cursor: dict[str, str] = {}
    for _ in range(4):
        page = api.get("/plans", {"limit": "2", **cursor})
        PlanPage.model_validate(page.json())
        found += names(page)
        cursor = {"cursor": page.json()["next"]}
        if len(found) == 2:
            # One that arrives meanwhile is newer than every page that follows.
            api.post("/plans", submission("pl_late"))
    assert found == seven
    assert cursor == {"cursor": None}


def test_the_last_full_page_says_that_it_is_the_last(api: Api, seven: list[str]) -> None:
    assert api.get("/plans", {"limit": "7"}).json()["next"] is None


def test_filters_narrow_the_list(api: Api, seven: list[str]) -> None:
    follow(Plan.objects.get(plan_id="pl_3"), Verb.VERIFY)
    intent = Plan.objects.get(plan_id="pl_4").intent_id
    assert names(api.get("/plans", {"status": "pending"})) == ["pl_3"]
    assert names(api.get("/plans", {"task_id": "task-1"})) == ["pl_5", "pl_3", "pl_1"]
    assert names(api.get("/plans", {"intent_id": str(intent)})) == ["pl_4"]
    assert names(api.get("/plans", {"status": "pending", "task_id": "task-0"})) == []


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=0", "invalid-limit"),
        ("limit=-1", "invalid-limit"),
        ("limit=1000000000", "invalid-limit"),
        ("limit=201", "invalid-limit"),
        ("limit=", "invalid-limit"),
        ("limit=%D9%A4", "invalid-limit"),
        ("limit=5%0A", "invalid-limit"),
        ("cursor=", "invalid-cursor"),
        ("cursor=junk", "invalid-cursor"),
        ("cursor=%00", "invalid-cursor"),
        ("cursor=%F0%9F%98%80:x", "invalid-cursor"),
        ("status=done", "invalid-parameter"),
        ("status=%00", "invalid-parameter"),
        ("status=", "invalid-parameter"),
        ("task_id=a%00b", "invalid-parameter"),
        ("intent_id=1", "invalid-parameter"),
        ("intent_id=%00", "invalid-parameter"),
        ("page=2", "invalid-parameter"),
        ("status=pending&status=expired", "invalid-parameter"),
        ("%FF=%FF", "invalid-parameter"),
    ],
)  # BI-48
def test_a_bad_query_is_refused(api: Api, plan: Plan, query: str, code: str) -> None:
    answer = api.client.get(f"/api/v1/plans?{query}", headers=api.headers)
    assert (answer.status_code, answer.json()["code"]) == (422, code)


def test_another_agents_cursor_is_refused(api: Api, stranger: Api, seven: list[str]) -> None:
    cursor = api.get("/plans", {"limit": "2"}).json()["next"]
    answer = stranger.get("/plans", {"cursor": cursor})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-cursor")


def queries(act: Callable[[], Any]) -> int:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert act().status_code in (200, 304)
    return len(captured)


def test_the_number_of_queries_does_not_grow(api: Api, seven: list[str], ada: User) -> None:
    api.get("/plans")
    for plan in Plan.objects.all():
        plan = follow(plan, Verb.VERIFY)
        Decision.objects.create(
            plan=plan, round=1, person=ada, verdict="approve", shown_digest="0" * 64
        )
        follow(plan, Verb.EXPIRE)
    api.post("/plans", submission("pl_next", replaces="pl_3"))
    one = queries(lambda: api.get("/plans", {"limit": "1"}))
    many = queries(lambda: api.get("/plans"))
    assert one == many == 3
    assert queries(lambda: api.get("/plans/billing/pl_3")) == 3


# Abandonment


def test_an_open_plan_is_abandoned_with_its_intent(api: Api, plan: Plan) -> None:
    answer = api.post("/plans/billing/pl_1/abandonment", {"reason": "task_end", "note": "over"})
    assert answer.status_code == 200
    members = answer.json()
    assert (members["status"], members["abandonment"]) == ("abandoned", "abandoned")
    assert members["next_action"] == "stop"
    plan.refresh_from_db()
    assert plan.token is None
    again = api.post("/plans/billing/pl_1/abandonment", {"reason": "other"})
    assert (again.status_code, again.json()["status"]) == (200, "abandoned")


def test_a_committed_plan_stays_as_it_is(api: Api, plan: Plan) -> None:
    follow(plan, *VERBS["committed"])
    answer = api.post("/plans/billing/pl_1/abandonment", {"reason": "other"})
    assert (answer.status_code, answer.json()["status"]) == (200, "committed")
    assert answer.json()["abandonment"] == "already_closed"


def test_a_plan_in_flight_is_only_noted(api: Api, plan: Plan) -> None:
    plan = follow(plan, *VERBS["committing"])
    plan.attempts.create(number=1, lease_until=clock() + timedelta(minutes=1))
    answer = api.post("/plans/billing/pl_1/abandonment", {"reason": "other"})
    assert (answer.status_code, answer.json()["status"]) == (202, "committing")
    assert answer.json()["abandonment"] == "abandon_noted"


# Intents


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


# What nobody foresaw


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (OperationalError("server closed the connection"), 503, "database-away"),
        (InterfaceError("connection already closed"), 503, "database-away"),
        (RuntimeError(f"a secret: {TOKEN}"), 500, "internal-error"),
        (SuspiciousOperation("junk"), 400, "invalid-header"),
        (NotFound(), 404, "not-found"),
    ],
)
def test_every_error_is_a_problem_without_its_words(
    api: Api, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, code: str
) -> None:
    def fail(*_arguments: object) -> None:
        raise error

    monkeypatch.setattr(listing, "page_of", fail)
    answer = api.get("/plans")
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert ("Retry-After" in answer) is (status == 503)
    assert "secret" not in answer.content.decode()
