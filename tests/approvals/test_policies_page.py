"""The plan's page under policies: who has approved, who can, who cannot and why (4-screens)."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals import forms
from approvals.models import Decision, Policy
from audit.models import Event
from plans.clock import clock
from plans.models import Agent, Operation, Plan
from tests.approvals.decision_form import HTMX, PROBLEM, address, code_of, now, vote
from tests.approvals.demanding import LARGE, approve, policy
from tests.approvals.plan_pages import read, text_of
from tests.plans.api_calls import Api, dry_run, submission

pytestmark = pytest.mark.django_db
type Make = Callable[..., Plan]


def shown(plan: Plan, ago: float = 0) -> str:
    """The page's signed field, as of so many seconds ago."""
    return forms.shown_at(plan, plan, clock() - timedelta(seconds=ago))


def sign_in_now(client: Client, person: User, ago: float = 0) -> None:
    """What signing in leaves in the session."""
    client.force_login(person)
    session = client.session
    session["account_authentication_methods"] = [{"method": "password", "at": time.time() - ago}]
    session["account_authentication_methods_user"] = str(person.pk)
    session.save()


def test_one_of_two(client: Client, ada: User, grace: User, dana: User, make_plan: Make) -> None:
    policy("large", require={"reviewers": 2})
    plan = make_plan()
    page = read(client, ada, plan)
    assert "0 of 2 given. Needs 2 of reviewers, distinct people." in page
    assert "Asked for by “large”." in page
    assert "Can approve: ada, grace." in page
    assert "dana cannot: owns support-agent." in page
    assert "Approve (1 of 2)" in page
    assert "nothing is sent before the last one" in page
    approve(ada, plan, "fine")
    page = read(client, grace, plan)
    assert "ada approved at" in page
    assert "1 of 2 given" in page
    assert "Still open: reviewers." in page
    assert "Can approve: grace." in page
    assert "Approve and commit now" in page
    assert "Commits at once to billing." in page
    page = read(client, ada, plan)
    assert "You have decided already." in page
    assert "Withdraw my approval" in page
    assert "you can decide again afterwards" in page


def test_whose_approval_would_not_count_is_told(
    client: Client, ada: User, grace: User, make_plan: Make
) -> None:
    policy("leads", require={"leads": 1})
    plan = make_plan()
    page = read(client, ada, plan)
    assert "ada cannot approve: is not in leads." in page
    assert "it needs somebody of leads" in page
    assert 'value="approve"' not in client.get(address(plan, "")).text
    assert "Can approve: grace." in page
    assert code_of(vote(client, ada, plan)) == "not-allowed"
    assert vote(client, ada, plan, "reject", note="no").status_code == 303


def test_too_few_people_is_said(client: Client, ada: User, grace: User, make_plan: Make) -> None:
    policy("three leads", require={"leads": 3})
    assert "Too few people can approve it." in read(client, grace, make_plan())


def test_a_denied_plan_says_which_policy(client: Client, ada: User, make_plan: Make) -> None:
    policy("never so much", deny=True)
    plan = make_plan()
    page = read(client, ada, plan)
    assert "Denied by policyThe policy “never so much” does not allow such a plan." in page
    assert "Can approve" not in page
    response = vote(client, ada, plan, headers=PROBLEM)
    assert (response.status_code, response.json()["code"]) == (403, "policy-denied")
    assert "never so much" in response.json()["detail"]
    assert vote(client, ada, plan, "request_changes", note="less").status_code == 303


def test_an_unclear_policy_is_named(client: Client, ada: User, make_plan: Make) -> None:
    policy("<b>broken</b>", "delta.fee_cents > 0")
    page = read(client, ada, make_plan())
    assert "A policy could not be evaluated “<b>broken</b>”: Key not found in map" in page
    assert "revision 1 · critical" in page
    assert "To approve, type 480.00 USD" in page


def test_a_policy_that_reads_what_is_not_confirmed_is_named(
    client: Client, ada: User, make_plan: Make
) -> None:
    policy("wishes", "inputs.amount_cents > 1000000")
    page = read(client, ada, make_plan(inputs_confirmed=False))
    assert "A policy counts as matched“wishes” reads inputs, which billing does not confirm" in page


def test_an_approval_that_no_longer_counts_is_marked(
    client: Client, ada: User, grace: User, make_plan: Make
) -> None:
    policy("large", require={"reviewers": 2})
    plan = make_plan()
    approve(ada, plan)
    ada.groups.clear()
    page = read(client, grace, plan)
    assert "does not count: does not review billing any more" in page
    assert "0 of 2 given" in page


def test_an_edited_policy_asks_everybody_again(
    client: Client, ada: User, grace: User, make_plan: Make
) -> None:
    """B-11, and B-2: the page says what is not as it was."""
    row = policy("large", require={"reviewers": 2})
    plan = make_plan()
    approve(ada, plan)
    token = shown(plan)
    Policy.objects.filter(pk=row.pk).update(note_required=True)
    page = read(client, ada, plan)
    assert "0 of 2 given" in page
    assert "Each approval needs a note." in page
    response = vote(client, grace, plan, shown_at=token)
    assert (response.status_code, code_of(response)) == (412, "digest-mismatch")
    assert "Not as it was when you opened this page: the policy." in text_of(response)
    plan = now(plan)
    assert vote(client, ada, plan, note="still fine").status_code == 303
    assert vote(client, grace, plan, note="fine").status_code == 303
    assert (now(plan).status, now(plan).round) == ("approved", 2)


def test_a_look_that_was_too_short_goes_on(client: Client, ada: User, make_plan: Make) -> None:
    """B-11: measured from the signed field, which a second try does not start again."""
    policy("dwell", dwell_seconds=10)
    plan = make_plan()
    assert "A policy asks for a look of 10 s." in read(client, ada, plan)
    token = shown(plan, ago=4)
    response = vote(client, ada, plan, shown_at=token)
    assert (response.status_code, code_of(response)) == (422, "decided-too-soon")
    assert re.search(r"A policy asks for a longer look: [456] s more.", response.text)
    assert f'name="shown_at" value="{token}"' in response.text
    assert vote(client, ada, plan, shown_at=shown(plan, ago=11)).status_code == 303
    looked = Decision.objects.get()
    assert looked.shown_at is not None
    assert looked.decided_at - looked.shown_at >= timedelta(seconds=11)


@pytest.mark.parametrize(("changed", "goes_on"), [(False, True), (True, False)])
def test_a_look_goes_on_under_a_live_update_that_shows_the_same(
    client: Client, ada: User, grace: User, make_plan: Make, changed: bool, goes_on: bool
) -> None:
    """B-11: somebody else's approval swaps the page; only a changed digest begins a new look."""
    row = policy("slowly", require={"reviewers": 2}, dwell_seconds=60)
    plan = make_plan()
    begun = shown(plan, ago=20)
    approve(grace, plan, shown_at=clock() - timedelta(minutes=2))
    if changed:
        Policy.objects.filter(pk=row.pk).update(note_required=True)
    client.force_login(ada)
    headers = HTMX | {"Plan-State": "as it was", "Shown-At": begun}
    page = unescape(client.get(address(plan, ""), headers=headers).text)
    [token] = re.findall(r'name="shown_at" value="([^"]+)"', page)
    [left] = re.findall(r'data-dwell-ms="(\d+)"', page)
    assert (token == begun) is goes_on
    assert (int(left) <= 40_000) is goes_on
    # What it asks with next says the same as its form.
    assert f'"Shown-At": "{token}"' in page


def test_a_look_that_no_page_of_ours_began_is_none(
    client: Client, ada: User, make_plan: Make
) -> None:
    policy("slowly", dwell_seconds=10)
    plan, other = make_plan(), make_plan()
    client.force_login(ada)
    for begun in ("", "forged", shown(other, ago=8)):
        page = client.get(address(plan, ""), headers=HTMX | {"Shown-At": begun}).text
        assert 'data-dwell-ms="10000"' in page


@pytest.mark.parametrize("demanded", [True, False])
def test_the_note_is_required_for_an_approval_where_a_policy_demands_it(
    client: Client, ada: User, make_plan: Make, demanded: bool
) -> None:
    policy("say why", note_required=demanded)
    plan = make_plan()
    client.force_login(ada)
    page = client.get(address(plan, "")).text
    note, *_ = re.findall(r'<textarea[^>]*name="note"[^>]*>', page)
    assert (" required" in note) is demanded
    # The other verdicts go to the server as they are, which says what is missing.
    for verdict in ("reject", "request_changes"):
        assert f'name="verdict" value="{verdict}" formnovalidate' in page
    response = vote(client, ada, plan)
    assert response.status_code == (422 if demanded else 303)
    if demanded:
        assert code_of(response) == "note-required"
        assert re.search(r'name="note"[^>]* required aria-invalid="true" autofocus', response.text)


def test_no_other_page_s_look_counts(client: Client, ada: User, make_plan: Make) -> None:
    policy("dwell", dwell_seconds=10)
    plan, other = make_plan(), make_plan()
    for token in (shown(other, ago=60), "", None):
        response = vote(client, ada, plan, shown_at=token)
        assert code_of(response) == "decided-too-soon"
    assert code_of(vote(client, ada, plan, shown_at="forged")) == "invalid-field"


def test_a_stale_sign_in_leads_to_the_page_that_asks(
    client: Client, ada: User, make_plan: Make
) -> None:
    """SEC-22, through the sign-in's own flow."""
    policy("step up", step_up=True)
    plan = make_plan()
    ada.set_password("a password of Ada's")
    ada.save()
    response = vote(client, ada, plan)
    assert response.status_code == 303
    asks = response["Location"]
    assert asks == f"/accounts/reauthenticate/?next=%2Fplans%2Fbilling%2F{plan.plan_id}%2F"
    assert Event.objects.get(action="decision.refused").details["code"] == "step-up-required"
    assert client.get(asks).status_code == 200
    assert "Approving asks who you are" in client.get(address(plan, "")).text
    back = client.post(asks, {"password": "a password of Ada's"})
    assert back["Location"] == address(plan, "")
    assert "Approving asks who you are" not in client.get(address(plan, "")).text
    form = {"verdict": "approve", "note": "", "shown_digest": plan.digest}
    assert client.post(address(plan), form).status_code == 303
    assert now(plan).status == "approved"
    assert Decision.objects.get().stepped_up


@pytest.mark.parametrize(("ago", "fresh"), [(10, True), (290, True), (310, False), (-60, False)])
def test_five_minutes(client: Client, ada: User, make_plan: Make, ago: float, fresh: bool) -> None:
    policy("step up", step_up=True)
    plan = make_plan()
    sign_in_now(client, ada, ago)
    form = {"verdict": "approve", "note": "", "shown_digest": plan.digest}
    client.post(address(plan), form)
    assert (now(plan).status == "approved") == fresh


def test_a_stale_sign_in_for_scripts_and_fragments(
    client: Client, ada: User, make_plan: Make
) -> None:
    policy("step up", step_up=True)
    plan = make_plan()
    problem = vote(client, ada, plan, headers=PROBLEM)
    assert (problem.status_code, problem.json()["code"]) == (403, "step-up-required")
    fragment = vote(client, ada, plan, headers=HTMX)
    assert fragment["HX-Redirect"].startswith("/accounts/reauthenticate/?next=")


def test_an_approval_is_taken_back_on_the_page(client: Client, ada: User, make_plan: Make) -> None:
    policy("large", require={"reviewers": 2})
    plan = make_plan()
    vote(client, ada, plan)
    response = client.post(address(plan, "withdrawal/"), {"note": "wrong customer"})
    assert response.status_code == 303
    page = text_of(client.get(address(plan, "")))
    assert "0 of 2 given" in page
    assert "ada withdrew the approval of" in page
    assert "You can decide." in page


# ── The agent ───────────────────────────────────────────────────────────────────────────────


def test_a_submission_that_its_own_words_deny_is_refused(
    api_key: str, refund: Operation, support_agent: Agent
) -> None:
    """B-7: with the policy's name, and nothing stored; a repeat of what is here is answered."""
    body = submission()
    assert Api(api_key).post("/plans", body).status_code == 201
    policy("never so much", LARGE, deny=True)
    assert Api(api_key).post("/plans", body).status_code == 200
    answer: Any = Api(api_key).post("/plans", submission("pl_2"))
    assert (answer.status_code, answer.json()["code"]) == (403, "policy-denied")
    assert answer.json()["next_action"] == "stop"
    assert "never so much" in answer.json()["detail"]
    assert Plan.objects.count() == 1
    assert dry_run("pl_2")["plan_id"] == "pl_2"
