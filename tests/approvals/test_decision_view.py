"""Deciding through the browser's form: B-1 … B-4, B-9, BI-40 … BI-46."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import Decision
from audit.models import Event
from plans.clock import clock
from plans.models import Attempt, Operation, Plan, Replan, Target

type MakePlan = Callable[..., Plan]

pytestmark = pytest.mark.django_db
PROBLEM = {"Accept": "application/problem+json"}
HTMX = {"HX-Request": "true"}


def address(plan: Plan, noun: str = "decision/") -> str:
    return f"/plans/{plan.target.name}/{plan.plan_id}/{noun}"


def vote(client: Client, person: User, plan: Plan, verdict: str = "approve", **fields: Any) -> Any:
    """Post the form as its page would; a field set to None is left out."""
    headers = fields.pop("headers", {})
    client.force_login(person)
    form = {"verdict": verdict, "note": "", "shown_digest": plan.digest} | fields
    sent = {name: value for name, value in form.items() if value is not None}
    return client.post(address(plan), sent, headers=headers)


def now(plan: Plan) -> Plan:
    return Plan.objects.with_names().get(pk=plan.pk)


def code_of(response: Any) -> str:
    found = re.search(r'data-code="([a-z-]+)"', response.text)
    return found[1] if found else ""


def test_an_approval_leads_to_the_next_plan_of_my_queue(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan, following = make_plan(), make_plan()
    response = vote(client, ada, plan)
    assert response.status_code == 303
    assert response["Location"] == address(following, "")
    assert now(plan).status == "approved"
    decision = Decision.objects.get()
    assert (decision.person, decision.verdict) == (ada, "approve")
    assert decision.shown_digest == plan.digest


def test_the_last_approval_leads_to_the_empty_queue(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    response = vote(client, ada, make_plan())
    assert (response.status_code, response["Location"]) == (303, "/review/")


def test_htmx_gets_the_next_plan_with_its_address(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan, following = make_plan(), make_plan()
    response = vote(client, ada, plan, headers=HTMX)
    assert response.status_code == 200
    assert response["HX-Push-Url"] == address(following, "")
    assert "decided" in response["HX-Trigger"]
    assert f'data-plan="{following.plan_id}"' in response.text
    assert "<html" not in response.text


def test_htmx_is_sent_to_the_empty_queue(client: Client, ada: User, make_plan: MakePlan) -> None:
    response = vote(client, ada, make_plan(), headers=HTMX)
    assert response["HX-Redirect"] == "/review/"


@pytest.mark.parametrize(
    ("verdict", "status"), [("reject", "rejected"), ("request_changes", "changes_requested")]
)
def test_one_refusal_with_a_note_closes_the_plan(
    client: Client, ada: User, make_plan: MakePlan, verdict: str, status: str
) -> None:
    plan = make_plan()
    assert vote(client, ada, plan, verdict, note="  too much \U0001f642 \u05d0 ").status_code == 303
    assert now(plan).status == status
    assert Decision.objects.get().note == "too much \U0001f642 \u05d0"


def test_the_hidden_fields_of_the_page_are_accepted(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    client.force_login(ada)
    page = client.get(address(plan, "")).text
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
    assert {"csrfmiddlewaretoken", "shown_digest", "shown_at"} <= fields.keys()
    response = client.post(address(plan), fields | {"verdict": "approve", "note": ""})
    assert response.status_code == 303
    assert now(plan).status == "approved"


@pytest.mark.parametrize("method", ["get", "head", "options", "put", "delete", "patch"])
def test_only_a_post_decides(client: Client, ada: User, make_plan: MakePlan, method: str) -> None:
    client.force_login(ada)
    plan = make_plan()
    response = getattr(client, method)(
        f"{address(plan)}?verdict=approve&shown_digest={plan.digest}&_method=post",
        headers={"X-HTTP-Method-Override": "POST"},
    )
    assert response.status_code == 405
    assert now(plan).status == "pending"


def test_a_form_without_its_token_decides_nothing(ada: User, make_plan: MakePlan) -> None:
    plan = make_plan()
    strict = Client(enforce_csrf_checks=True)
    assert vote(strict, ada, plan).status_code == 403
    assert now(plan).status == "pending"


def test_an_api_key_decides_nothing(client: Client, api_key: str, make_plan: MakePlan) -> None:
    plan = make_plan()
    response = client.post(
        address(plan),
        {"verdict": "approve", "shown_digest": plan.digest},
        headers={"Authorization": f"Bearer {api_key}"},
    )
    assert response.status_code == 403
    assert now(plan).status == "pending"


def test_nobody_decides_without_signing_in(client: Client, make_plan: MakePlan) -> None:
    plan = make_plan()
    response = client.post(address(plan), {"verdict": "approve", "shown_digest": plan.digest})
    assert response.status_code == 302
    assert now(plan).status == "pending"


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"shown_digest": None}, 428, "digest-missing"),
        ({"shown_digest": ""}, 428, "digest-missing"),
        ({"shown_digest": "0" * 64}, 412, "digest-mismatch"),
        ({"shown_digest": "upper"}, 412, "digest-mismatch"),
        ({"shown_digest": "spaced"}, 412, "digest-mismatch"),
        ({"verdict": "reject"}, 422, "note-required"),
        ({"verdict": "reject", "note": " \n\t "}, 422, "note-required"),
        ({"verdict": "request_changes"}, 422, "note-required"),
        ({"note": "x" * 4001}, 422, "invalid-note"),
        ({"note": "x" * 100_000}, 422, "invalid-note"),
        ({"note": "a\0b"}, 422, "invalid-note"),
        ({"verdict": "maybe"}, 422, "invalid-field"),
        ({"verdict": "\0"}, 422, "invalid-field"),
        ({"verdict": ""}, 422, "invalid-field"),
        ({"verdict": None}, 422, "invalid-field"),
        ({"verdict": ["approve", "reject"]}, 422, "invalid-field"),
        ({"amount": "1"}, 422, "unknown-field"),
        ({"actions": "[]"}, 422, "unknown-field"),
        ({"approved_by": "grace"}, 422, "unknown-field"),
        ({"_method": "post"}, 422, "unknown-field"),
        ({"plan_id": "plan_other"}, 422, "id-mismatch"),
        ({"target": "payouts"}, 422, "id-mismatch"),
        ({"shown_at": "forged"}, 422, "invalid-field"),
    ],
)
def test_a_faulty_form_is_refused_and_decides_nothing(
    client: Client, ada: User, make_plan: MakePlan, fields: dict[str, Any], status: int, code: str
) -> None:
    plan = make_plan()
    spelt = {"upper": plan.digest.upper(), "spaced": f" {plan.digest} "}
    if fields.get("shown_digest") in spelt:
        fields = fields | {"shown_digest": spelt[fields["shown_digest"]]}
    response = vote(client, ada, plan, **fields)
    assert (response.status_code, code_of(response)) == (status, code)
    assert "Nothing was decided." in response.text
    assert 'name="verdict"' in response.text
    problem = vote(client, ada, plan, **fields, headers=PROBLEM)
    assert (problem.status_code, problem.json()["code"]) == (status, code)
    assert problem["Content-Type"] == "application/problem+json"
    assert now(plan).status == "pending"
    assert not Decision.objects.exists()


def test_what_the_address_repeats_may_be_repeated(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    assert vote(client, ada, plan, plan_id=plan.plan_id, target="billing").status_code == 303


def test_the_digest_of_another_plan_does_not_count(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan, other = make_plan(), make_plan()
    assert vote(client, ada, plan, shown_digest=other.digest).status_code == 412


def test_what_was_typed_survives_a_refusal(client: Client, ada: User, make_plan: MakePlan) -> None:
    note = '</textarea><script>alert("x")</script>'
    response = vote(client, ada, make_plan(), note=note, shown_digest="")
    assert "&lt;/textarea&gt;&lt;script&gt;" in response.text
    assert "<script>alert" not in response.text


def test_a_page_from_before_a_change_is_refused_with_the_change_marked(
    client: Client, ada: User, make_plan: MakePlan, refund: Operation
) -> None:
    plan = make_plan()
    client.force_login(ada)
    page = client.get(address(plan, "")).text
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
    Operation.objects.filter(pk=refund.pk).update(
        title="Give back {delta.refunded_cents:money:USD} on {object}"
    )
    response = client.post(address(plan), fields | {"verdict": "approve"})
    assert response.status_code == 412
    assert "Not as it was when you opened this page: the title." in response.text
    assert '<header class="head changed">' in response.text
    assert "Give back 480.00 USD on invoice/4412" in response.text
    fresh = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', response.text))
    assert client.post(address(plan), fresh | {"verdict": "approve"}).status_code == 303


def test_an_unchanged_world_is_approvable_after_the_configuration_moved(
    client: Client, ada: User, make_plan: MakePlan, refund: Operation
) -> None:
    """The page and the stored assessment agree, though the plan was verified before the edit."""
    plan = make_plan()
    Operation.objects.filter(pk=refund.pk).update(title="Other words on {object}")
    client.force_login(ada)
    page = client.get(address(plan, "")).text
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
    assert client.post(address(plan), fields | {"verdict": "approve"}).status_code == 303
    assert now(plan).title == "Other words on invoice/4412"


def test_a_risk_that_was_raised_meanwhile_asks_for_its_confirmation(
    client: Client, ada: User, make_plan: MakePlan, refund: Operation
) -> None:
    plan = make_plan()
    Operation.objects.filter(pk=refund.pk).update(risk="critical")
    client.force_login(ada)
    page = client.get(address(plan, "")).text
    assert 'data-confirm="480.00 USD"' in page
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
    form = fields | {"verdict": "approve"}
    assert client.post(address(plan), form).status_code == 422
    assert client.post(address(plan), form | {"confirm": "480.00 USD"}).status_code == 303


@pytest.mark.fm(55)
def test_the_same_person_s_repeat_shows_the_plan(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    make_plan()
    vote(client, ada, plan)
    response = vote(client, ada, plan)
    assert (response.status_code, response["Location"]) == (303, address(plan, ""))
    assert Decision.objects.count() == 1


def test_somebody_else_comes_too_late_and_hears_who_decided(
    client: Client, ada: User, grace: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    vote(client, ada, plan)
    response = vote(client, grace, plan, "reject", note="no")
    assert (response.status_code, code_of(response)) == (409, "already-decided")
    assert "<b><bdi>ada</bdi></b> approved it first, at" in response.text
    assert "Your decision was not recorded." in response.text
    body = vote(client, grace, plan, "reject", note="no", headers=PROBLEM).json()
    assert (body["decided_by"], body["verdict"]) == ("ada", "approve")
    assert now(plan).status == "approved"


def test_a_second_thought_of_the_same_person_is_no_second_decision(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    vote(client, ada, plan)
    assert vote(client, ada, plan, "reject", note="no").status_code == 409


def test_a_plan_whose_time_is_over_is_gone(client: Client, ada: User, make_plan: MakePlan) -> None:
    plan = make_plan(decide_by=clock() - timedelta(milliseconds=1))
    response = vote(client, ada, plan)
    assert (response.status_code, code_of(response)) == (410, "plan-expired")
    assert response["Cache-Control"] == "no-store"
    assert "being planned again" in response.text
    assert now(plan).status == "expired"
    assert Replan.objects.filter(plan=plan).exists()


@pytest.mark.fm(42)
def test_a_superseded_plan_leads_to_its_successor(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    old = make_plan(status="superseded", closed_at=clock())
    new = make_plan(intent=old.intent, revision=2, replaces=old)
    response = vote(client, ada, old)
    assert (response.status_code, code_of(response)) == (409, "superseded")
    assert f'href="{address(new, "")}"' in response.text


def test_a_plan_in_flight_is_not_decided_again(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    response = vote(client, ada, make_plan(status="committing"))
    assert (response.status_code, code_of(response)) == (409, "commit-in-flight")


@pytest.mark.parametrize("person", ["dana", "mona"])
def test_who_may_read_but_not_decide_is_refused(
    request: pytest.FixtureRequest, client: Client, make_plan: MakePlan, person: str
) -> None:
    plan = make_plan()
    response = vote(client, request.getfixturevalue(person), plan)
    assert (response.status_code, code_of(response)) == (403, "not-allowed")
    assert now(plan).status == "pending"
    assert Event.objects.filter(action="decision.refused", plan_id=plan.plan_id).exists()


def test_a_stranger_finds_nothing_to_decide_on(
    client: Client, charlie: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    assert vote(client, charlie, plan).status_code == 404
    assert now(plan).status == "pending"


def test_an_unverified_plan_is_approved_only_where_its_target_allows_it(
    client: Client, ada: User, make_plan: MakePlan, billing: Target
) -> None:
    plan = make_plan(verification="unavailable")
    assert vote(client, ada, plan).status_code == 403
    Target.objects.filter(pk=billing.pk).update(allow_unverified=True)
    assert vote(client, ada, plan).status_code == 303


@pytest.mark.parametrize(
    ("typed", "status"),
    [
        (None, 422),
        ("", 422),
        ("yes", 422),
        ("48000", 422),
        ("480.00 USD", 303),
        (" 480.00  USD ", 303),
    ],
)
def test_a_critical_plan_is_approved_with_a_value_typed_from_it(
    client: Client,
    ada: User,
    make_plan: MakePlan,
    refund: Operation,
    typed: str | None,
    status: int,
) -> None:
    refund.risk = "critical"
    refund.save()
    response = vote(client, ada, make_plan(), confirm=typed)
    assert response.status_code == status
    if status == 422:
        assert code_of(response) == "confirmation-mismatch"


def test_a_critical_plan_is_rejected_without_typing(
    client: Client, ada: User, make_plan: MakePlan, refund: Operation
) -> None:
    refund.risk = "critical"
    refund.save()
    assert vote(client, ada, make_plan(), "reject", note="no").status_code == 303


def test_htmx_gets_a_refusal_as_a_part(client: Client, ada: User, make_plan: MakePlan) -> None:
    plan = make_plan()
    again = vote(client, ada, plan, "reject", headers=HTMX)
    assert (again.status_code, code_of(again)) == (422, "note-required")
    assert "<html" not in again.text
    vote(client, ada, plan)
    late = vote(client, ada, plan, "reject", note="no", headers=HTMX)
    assert (late.status_code, code_of(late)) == (409, "already-decided")
    assert "<html" not in late.text


def withdraw(client: Client, person: User, plan: Plan, **fields: str) -> Any:
    client.force_login(person)
    return client.post(address(plan, "withdrawal/"), {"note": "second thoughts"} | fields)


def test_an_approval_is_withdrawn_before_anything_was_sent(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    vote(client, ada, plan)
    response = withdraw(client, ada, plan)
    assert (response.status_code, response["Location"]) == (303, address(plan, ""))
    assert now(plan).status == "rejected"
    page = client.get(address(plan, "")).text
    assert "Withdrawn at" in page


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"note": " "}, 422, "note-required"),
        ({"verdict": "approve"}, 422, "unknown-field"),
        ({"plan_id": "x"}, 422, "id-mismatch"),
    ],
)
def test_a_faulty_withdrawal_changes_nothing(
    client: Client, ada: User, make_plan: MakePlan, fields: dict[str, str], status: int, code: str
) -> None:
    plan = make_plan()
    vote(client, ada, plan)
    response = withdraw(client, ada, plan, **fields)
    assert (response.status_code, code_of(response)) == (status, code)
    assert now(plan).status == "approved"


def test_nobody_withdraws_what_others_approved_or_what_was_sent(
    client: Client, ada: User, grace: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    vote(client, ada, plan)
    assert withdraw(client, grace, plan).status_code == 403
    Attempt.objects.create(plan=plan, number=1, lease_until=clock())
    Plan.objects.filter(pk=plan.pk).update(status="committing")
    assert code_of(withdraw(client, ada, plan)) == "commit-in-flight"


def test_a_form_that_is_refused_leaves_an_event(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    response = vote(client, ada, make_plan(), amount="1")
    assert response.status_code == 422
    event = Event.objects.get(action="decision.refused")
    assert (event.actor_label, event.details["code"]) == ("ada", "unknown-field")
    assert event.details["verdict"] == "approve"
