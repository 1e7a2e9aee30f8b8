"""PostgreSQL that refuses: transactions that lose, a disk that is full (FM-34, FM-53)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import Decision
from audit.models import Event
from plans.models import Intent, Plan
from plans.retrying import RETRIES
from tests.plans.api_calls import Api, submission
from tests.plans.refusing_trail import trail_refuses

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("refund")]
type Make = Callable[..., Plan]


@pytest.fixture
def api(api_key: str) -> Api:
    return Api(api_key)


@pytest.fixture
def approve(client: Client, ada: User) -> Callable[[Plan], Any]:
    """Ada's click on Approve, on the page of this plan."""
    client.raise_request_exception = False
    client.force_login(ada)

    def click(plan: Plan) -> Any:
        form = {"verdict": "approve", "note": "", "shown_digest": plan.digest}
        return client.post(f"/plans/billing/{plan.plan_id}/decision/", form)

    return click


def nothing_changed(plan: Plan) -> bool:
    plan.refresh_from_db()
    return plan.status == "pending" and not Decision.objects.exists() and not Event.objects.exists()


@pytest.mark.fm(34)
@pytest.mark.parametrize("code", ["40001", "40P01"])
def test_a_transaction_that_loses_three_times_is_repeated_unseen(
    api: Api, pending: Make, approve: Callable[[Plan], Any], code: str
) -> None:
    plan = pending()
    with trail_refuses(code, RETRIES):
        assert approve(plan).status_code == 303
    with trail_refuses(code, RETRIES):
        assert api.post("/plans", submission()).status_code == 201
    plan.refresh_from_db()
    assert (plan.status, Decision.objects.count()) == ("approved", 1)
    assert Plan.objects.count() == Intent.objects.count() == 2


@pytest.mark.fm(34)
@pytest.mark.parametrize("code", ["40001", "40P01"])
def test_a_transaction_that_always_loses_is_an_absence_and_no_conflict(
    api: Api, pending: Make, approve: Callable[[Plan], Any], code: str
) -> None:
    """Three repeats and no more; then 503 and when to come back."""
    plan = pending()
    with trail_refuses(code, RETRIES + 1):
        answer = approve(plan)
    assert (answer.status_code, "Retry-After" in answer) == (503, True)
    with trail_refuses(code, RETRIES + 1):
        answer = api.post("/plans", submission())
    assert (answer.status_code, answer.json()["code"]) == (503, "database-away")
    assert (nothing_changed(plan), Plan.objects.count()) == (True, 1)


@pytest.mark.fm(53)
@pytest.mark.parametrize(
    "code",
    [
        pytest.param("53100", id="disk full"),
        pytest.param("53200", id="out of memory"),
        pytest.param("25006", id="read only"),
        pytest.param("XX001", id="data corrupted"),
    ],
)
def test_what_the_trail_cannot_take_does_not_happen(
    api: Api, pending: Make, approve: Callable[[Plan], Any], code: str
) -> None:
    """No decision and no plan without its event; the answer is 503, and the next click works."""
    plan = pending()
    with trail_refuses(code, 1):
        answer = approve(plan)
    assert (answer.status_code, "Retry-After" in answer) == (503, True)
    with trail_refuses(code, 1):
        answer = api.post("/plans", submission())
    assert (answer.status_code, answer.json()["code"]) == (503, "database-away")
    assert (nothing_changed(plan), Plan.objects.count()) == (True, 1)
    assert approve(plan).status_code == 303
    assert api.post("/plans", submission()).status_code == 201
