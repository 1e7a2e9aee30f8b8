"""A target that refuses the app's credential: its plans say so, since when, and who can mend it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from plans import health
from plans.clock import clock
from plans.exchanges import Answer, NotSent
from plans.models import Plan, Target, TargetHealth
from plans.status import Status
from tests.approvals.plan_pages import address, get, text_of

type MakePlan = Callable[..., Plan]
type Told = Callable[[Plan], str]
pytestmark = pytest.mark.django_db

HEADING = "billing refuses the app's credential"
SINCE = datetime.fromisoformat("2026-03-14T09:36:41Z")


@pytest.fixture
def told(client: Client, ada: User) -> Told:
    """What the page says of the credential; empty: nothing."""

    def tell(plan: Plan) -> str:
        page: Any = get(client, ada, plan)
        found = re.search(
            r'<section class="note bad" id="credential".*?</section>', page.text, re.S
        )
        page.content = found[0].encode() if found else b""
        return text_of(page)

    return tell


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize(
    ("waits", "says"),
    [
        ({"status": Status.VERIFYING}, "nobody can decide on it."),
        (
            {"status": Status.UNKNOWN, "first_sent_at": SINCE},
            "nobody knows whether it was applied.",
        ),
    ],
)
def test_a_refused_read_is_told_with_its_time_and_who_can_mend_it(
    told: Told, make_plan: MakePlan, billing: Target, waits: dict[str, Any], says: str, status: int
) -> None:
    plan = make_plan(**waits)
    assert told(plan) == ""
    health.note(billing.pk, Answer(status, {}, b""))
    at = TargetHealth.objects.get().last_fault_at
    assert at is not None
    words = told(plan)
    assert words.startswith(f"{HEADING} billing answered HTTP {status} when this app asked it at ")
    assert f"{at:%H:%M:%S} UTC. Until the app can read this plan there, {says}" in words
    assert "Ask an operator: they can put in a new credential." in words


@pytest.mark.parametrize(
    ("columns", "answer"),
    [
        ({"status": Status.VERIFYING}, NotSent("connect", "refused")),
        ({"status": Status.PENDING}, Answer(401, {}, b"")),
        ({"status": Status.UNKNOWN}, Answer(401, {}, b"")),
        ({"status": Status.EXPIRED}, Answer(401, {}, b"")),
    ],
    ids=["another fault", "was read", "never sent", "is over"],
)
def test_what_is_not_about_this_plan_s_own_wait_is_not_told(
    told: Told, make_plan: MakePlan, billing: Target, columns: dict[str, Any], answer: Any
) -> None:
    plan = make_plan(**columns)
    health.note(billing.pk, answer)
    assert told(plan) == ""


def test_a_refusal_from_before_a_plan_came_says_nothing_about_it(
    told: Told, make_plan: MakePlan, billing: Target
) -> None:
    health.note(billing.pk, Answer(401, {}, b""))
    TargetHealth.objects.update(last_fault_at=clock() - timedelta(seconds=1))
    assert told(make_plan(status=Status.VERIFYING)) == ""


@pytest.mark.parametrize(
    ("columns", "concerned"),
    [
        ({"status": Status.VERIFYING}, True),
        ({"status": Status.PENDING}, True),
        ({"status": Status.APPROVED}, True),
        ({"status": Status.FAILED, "problem": {"status": 403}}, True),
        ({"status": Status.FAILED, "problem": {"status": 422}}, False),
        ({"status": Status.COMMITTED}, False),
    ],
)
def test_a_refused_commit_is_told_on_its_own_page_and_on_all_that_are_still_to_come(
    told: Told, make_plan: MakePlan, billing: Target, columns: dict[str, Any], concerned: bool
) -> None:
    why = "billing answered 403 to a commit"
    Target.objects.filter(pk=billing.pk).update(circuit_opened_at=SINCE, circuit_reason=why)
    words = told(make_plan(**columns))
    assert words == (
        f"{HEADING} {why} at 14 Mar 09:36:41 UTC. Since then approved plans wait to be sent, and"
        " expire if it lasts too long. Ask an operator: they can put in a new credential, or try"
        " this one again."
        if concerned
        else ""
    )


def test_the_button_says_that_the_commit_waits(
    client: Client, ada: User, make_plan: MakePlan, billing: Target
) -> None:
    plan = make_plan()
    assert ">Approve and commit now<" in get(client, ada, plan).text
    Target.objects.filter(pk=billing.pk).update(circuit_opened_at=SINCE, circuit_reason="403")
    page = get(client, ada, plan)
    assert ">Approve: the commit waits<" in page.text
    assert "Sending is held: an approved plan waits." in text_of(page)
    assert "commit now" not in page.text
    assert "Press A again to approve." in text_of(page)


def test_an_open_page_hears_of_it(
    client: Client, ada: User, make_plan: MakePlan, billing: Target
) -> None:
    plan = make_plan()
    [state] = re.findall(r'"Plan-State": "([^"]+)"', unescape(get(client, ada, plan).text))
    headers = {"HX-Request": "true", "Plan-State": state}
    assert client.get(address(plan), headers=headers).status_code == 204
    Target.objects.filter(pk=billing.pk).update(circuit_opened_at=SINCE, circuit_reason="403")
    assert HEADING in text_of(client.get(address(plan), headers=headers))
