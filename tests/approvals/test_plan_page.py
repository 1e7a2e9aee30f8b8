"""The page of a plan, as people meet it (4-screens, "A plan")."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from approvals.models import Decision
from audit.actions import Action
from audit.actors import COMMITTER
from audit.recording import record
from plans.clock import clock
from plans.models import Attempt, Evidence, Operation, Plan, Replan
from tests.approvals.paper_plans import MakePlan
from tests.approvals.plan_pages import address, get, read, text_of

pytestmark = pytest.mark.django_db


def test_the_order_is_the_one_of_the_screens(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    dead = make_plan(status="expired", closed_at=clock())
    plan = make_plan(intent=dead.intent, revision=2, replaces=dead, reason="lost parcel")
    page = read(client, ada, plan)
    parts = [
        "Refund 480.00 USD",
        "New since revision 1",
        "What will change",
        "Cannot be undone here",
        "Why",
        "Evidence",
        "Approvals",
        "Timeline",
        "Contract",
        "Approve and commit now",
    ]
    places = [page.find(part, page.find("Refund 480.00 USD")) for part in parts]
    assert -1 not in places
    assert places == sorted(places)


def test_the_form_carries_everything_a_decision_needs(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    body = get(client, ada, plan).content.decode()
    assert f'<input type="hidden" name="shown_digest" value="{plan.digest}">' in body
    assert 'name="shown_at"' in body
    assert 'name="note"' in body
    assert 'name="csrfmiddlewaretoken"' in body
    assert f'action="{address(plan)}decision/"' in body
    for verdict in ("approve", "reject", "request_changes"):
        assert f'name="verdict" value="{verdict}"' in body
    assert 'name="confirm"' not in body


def test_a_critical_plan_asks_for_a_value_of_its_own(
    client: Client, ada: User, make_plan: MakePlan, refund: Operation
) -> None:
    refund.risk = "critical"
    refund.save()
    assert 'data-confirm="480.00 USD"' in get(client, ada, make_plan()).content.decode()


@pytest.mark.parametrize("person", ["mona", "dana"])
def test_who_may_read_but_not_decide_has_no_buttons(
    request: pytest.FixtureRequest, client: Client, make_plan: MakePlan, person: str
) -> None:
    response = get(client, request.getfixturevalue(person), make_plan())
    assert response.status_code == 200
    assert 'name="verdict"' not in response.content.decode()
    assert "You cannot: " in text_of(response)


def test_a_stranger_finds_nothing(client: Client, charlie: User, make_plan: MakePlan) -> None:
    assert get(client, charlie, make_plan()).status_code == 404


def test_nobody_signs_in_first(client: Client, make_plan: MakePlan) -> None:
    response = client.get(address(make_plan()))
    assert response.status_code == 302
    assert response["Location"].startswith("/accounts/login/?next=/plans/billing/")


def test_another_target_s_plan_id_is_not_found(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    client.force_login(ada)
    assert client.get(f"/plans/payouts/{make_plan().plan_id}/").status_code == 404


@pytest.mark.parametrize("method", ["post", "put", "delete", "patch"])
def test_the_page_only_answers_to_reading(
    client: Client, ada: User, make_plan: MakePlan, method: str
) -> None:
    client.force_login(ada)
    assert getattr(client, method)(address(make_plan())).status_code == 405


def test_htmx_gets_the_part_beside_the_list(client: Client, ada: User, make_plan: MakePlan) -> None:
    body = get(client, ada, make_plan(), **{"HX-Request": "true"}).content.decode()
    assert "<html" not in body
    assert 'id="plan"' in body
    assert "<title>Refund 480.00 USD on invoice/4412 · Countersign</title>" in body


def test_an_unchanged_plan_is_not_sent_again(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    htmx = {"HX-Request": "true"}
    body = get(client, ada, plan, **htmx).content.decode()
    found = re.search(r'"Plan-State": "([^"]+)"', unescape(body))
    assert found
    headers = htmx | {"Plan-State": found[1]}
    assert get(client, ada, plan, **headers).status_code == 204
    Evidence.objects.create(plan=plan, label="later")
    assert get(client, ada, plan, **headers).status_code == 204
    Plan.objects.filter(pk=plan.pk).update(status="approved")
    assert get(client, ada, plan, **headers).status_code == 200


def test_the_token_is_on_no_page(client: Client, ada: User, make_plan: MakePlan) -> None:
    assert "token-of-the-tests" not in get(client, ada, make_plan()).content.decode()


def test_nothing_inline_is_needed(client: Client, ada: User, make_plan: MakePlan) -> None:
    body = get(client, ada, make_plan()).content.decode()
    assert not re.search(r"\sstyle=|\son\w+=|<style", body)
    assert all("nonce=" in script for script in re.findall(r"<script[^>]*>", body))


def _queries(client: Client, plan: Plan) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address(plan)).status_code == 200
    return len(captured)


def test_the_number_of_queries_does_not_grow(
    client: Client, ada: User, grace: User, make_plan: MakePlan
) -> None:
    plain = make_plan()
    Decision.objects.create(plan=plain, round=7, person=grace, verdict="reject")
    client.force_login(ada)
    few = _queries(client, plain)
    dead = make_plan(status="expired", closed_at=clock())
    for revision in range(2, 8):
        Decision.objects.create(plan=dead, round=1, person=grace, verdict="reject", note="x")
        place = {"intent": dead.intent, "revision": revision, "replaces": dead}
        last = make_plan(**place, status="expired", closed_at=clock())
        Replan.objects.create(
            intent=dead.intent, plan=dead, cause="expired", mode="server", status="done"
        )
        dead = last
    plan = make_plan(intent=dead.intent, revision=8, replaces=dead)
    for number in range(1, 6):
        Evidence.objects.create(plan=plan, label="l")
        Attempt.objects.create(plan=plan, number=number, lease_until=clock(), outcome="not_sent")
        record(Action.STATE_READ, COMMITTER, plan.subject(), {})
        make_plan()
    assert _queries(client, plan) == few
    assert few <= 32
