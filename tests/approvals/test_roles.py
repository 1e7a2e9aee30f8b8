"""Every address, as nobody, as a stranger, and as each kind of person. Closed by default."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, reverse

from approvals import urls
from approvals.models import Decision
from audit.actions import Action
from audit.actors import CLOCK
from audit.recording import record
from plans.clock import clock
from plans.models import Delivery, Plan, Webhook
from plans.status import Status

type MakePlan = Callable[..., Plan]

PEOPLE = ("charlie", "ada", "dana", "mona", "otto")
# What a GET answers to charlie, ada, dana (the agent's owner), mona and otto.
PAGES = {
    "review": (200, 200, 200, 200, 200),
    "hints": (204, 204, 204, 204, 204),
    "decisions": (200, 200, 200, 200, 200),
    "plan": (404, 200, 200, 200, 404),
    "replans": (200, 200, 200, 200, 200),
    "unresolved": (200, 200, 200, 200, 200),
    "settings": (403, 403, 403, 403, 200),
    "contract": (403, 403, 403, 403, 200),
    "notices": (403, 403, 403, 403, 200),
    "my_notices": (200, 200, 200, 200, 200),
    "webhooks": (403, 403, 200, 403, 200),
    "webhook": (404, 404, 200, 404, 200),
}
# What an empty POST answers: 404 not yours to see, 403 not yours to decide, 422/428 incomplete.
VERBS = {
    "dismissal": (404, 302, 404, 404, 404),
    "decision": (404, (422, 428), (403, 422, 428), (403, 422, 428), 404),
    "comment": (404, 422, 422, 422, 404),
    "withdrawal": (404, (403, 409, 422), (403, 409, 422), (403, 409, 422), 404),
    "finding": (404, 422, 403, 403, 404),
    "reading": (404, 409, 403, 403, 404),
    "plan_again": (404, 302, 403, 403, 404),
    "give_up": (404, 422, 403, 403, 404),
    "trial": (403, 403, 403, 403, 302),
    "contract_test": (403, 403, 403, 403, 302),
    "notice_switch": (403, 403, 403, 403, 422),
    "notice_webhook": (403, 403, 403, 403, 422),
    "notice_rotation": (403, 403, 403, 403, 422),
    "my_mail": (422, 422, 422, 422, 422),
    "webhook_addition": (403, 403, 422, 403, 422),
    "webhook_rotation": (404, 404, 422, 404, 422),
    "webhook_switch": (404, 404, 422, 404, 422),
    "redelivery": (404, 404, 302, 404, 302),
    "stop": (403, 403, 403, 403, 422),
    "release_request": (403, 403, 403, 403, 422),
    "release": (403, 403, 403, 403, 422),
}


@pytest.fixture
def address(make_plan: MakePlan, request: pytest.FixtureRequest) -> Callable[[str], str]:
    """The address of a view by its name, of a plan on which Ada has decided in an old round."""
    plan = make_plan(status=Status.PENDING, round=2)
    ada = request.getfixturevalue("ada")
    decision = Decision.objects.create(
        plan=plan, person=ada, round=1, verdict="approve", shown_digest=plan.digest
    )
    known = {
        "target": plan.target.name,
        "plan_id": plan.plan_id,
        "intent_id": plan.intent_id,
        "pk": decision.pk,
        "name": plan.target.name,
        "group_id": plan.target.reviewers.get().pk,
        **_told(plan),
    }

    def find(name: str) -> str:
        pattern = next(p for p in urls.urlpatterns if p.name == name)
        return reverse(name, kwargs={key: known[key] for key in pattern.pattern.converters})

    return find


def _told(plan: Plan) -> dict[str, int]:
    """A webhook of Dana's agent and one delivery of it."""
    hook = Webhook.objects.create(agent=plan.agent, url="https://h.example/", on_since=clock())
    with transaction.atomic():
        event = record(Action.PLAN_VERIFIED, CLOCK, plan.subject(), to_status=plan.status)
    delivery = Delivery.objects.create(webhook=hook, event=event, next_attempt_at=clock())
    return {"webhook_id": hook.pk, "delivery_id": delivery.pk}


def test_every_address_has_its_line_here() -> None:
    names = {pattern.name for pattern in urls.urlpatterns if isinstance(pattern, URLPattern)}
    assert names == PAGES.keys() | VERBS.keys()


@pytest.mark.parametrize("name", [*PAGES, *VERBS])
def test_nobody_is_sent_to_sign_in(
    client: Client, address: Callable[[str], str], name: str
) -> None:
    url = address(name)
    for method in ("get", "post", "head", "put", "delete"):
        answer = getattr(client, method)(url)
        assert answer.status_code == 302
        assert answer.url.startswith("/accounts/login/")


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("person", PEOPLE)
def test_pages_open_for_the_right_people(
    client: Client,
    request: pytest.FixtureRequest,
    address: Callable[[str], str],
    name: str,
    person: str,
) -> None:
    client.force_login(request.getfixturevalue(person))
    assert client.get(address(name)).status_code == PAGES[name][PEOPLE.index(person)]


@pytest.mark.parametrize("name", VERBS)
@pytest.mark.parametrize("person", PEOPLE)
def test_verbs_answer_the_right_people(
    client: Client,
    request: pytest.FixtureRequest,
    address: Callable[[str], str],
    name: str,
    person: str,
) -> None:
    client.force_login(request.getfixturevalue(person))
    expected = VERBS[name][PEOPLE.index(person)]
    allowed = expected if isinstance(expected, tuple) else (expected,)
    assert client.post(address(name)).status_code in allowed


@pytest.mark.parametrize("name", VERBS)
def test_links_never_act(
    client: Client, request: pytest.FixtureRequest, address: Callable[[str], str], name: str
) -> None:
    client.force_login(request.getfixturevalue("ada"))
    url = address(name)
    for method in ("get", "head", "put", "delete"):
        assert getattr(client, method)(url).status_code == 405
    assert Plan.objects.get().status == Status.PENDING


@pytest.mark.parametrize("name", PAGES)
def test_pages_take_no_post(
    client: Client, request: pytest.FixtureRequest, address: Callable[[str], str], name: str
) -> None:
    client.force_login(request.getfixturevalue("ada"))
    assert client.post(address(name)).status_code == 405


def test_a_person_who_was_switched_off_is_nobody(
    client: Client, request: pytest.FixtureRequest, address: Callable[[str], str]
) -> None:
    ada = request.getfixturevalue("ada")
    client.force_login(ada)
    ada.is_active = False
    ada.save()
    assert client.get(address("review")).status_code == 302


@pytest.mark.parametrize("url", ["/review/", "/replans/", "/unresolved/"])
@pytest.mark.parametrize(
    ("person", "says"),
    [
        ("charlie", "Ask an operator to put you into one."),
        ("otto", "Add yourself to such a group"),
    ],
)
def test_who_reviews_nothing_is_told_who_can_change_that(
    client: Client, request: pytest.FixtureRequest, person: str, says: str, url: str
) -> None:
    client.force_login(request.getfixturevalue(person))
    page = client.get(url).text
    both = ("Ask an operator to put you into one.", "Add yourself to such a group")
    assert [words for words in both if words in page] == [says]


@pytest.mark.parametrize(
    ("person", "says"),
    [("charlie", "it is not yours to see"), ("otto", "to see the plan itself, add yourself to")],
)
def test_a_plan_that_is_not_there_says_what_to_do_next(
    client: Client,
    request: pytest.FixtureRequest,
    address: Callable[[str], str],
    person: str,
    says: str,
) -> None:
    client.force_login(request.getfixturevalue(person))
    page = client.get(address("plan"))
    assert (page.status_code, says in page.text) == (404, True)


@pytest.mark.parametrize(
    ("person", "shown", "hidden"),
    [
        ("ada", ("/review/", "/replans/", "/unresolved/"), ("/audit/", "/settings/")),
        ("dana", ("/review/",), ("/audit/", "/settings/")),
        ("mona", ("/review/", "/audit/"), ("/settings/",)),
        ("otto", ("/audit/", "/settings/"), ()),
    ],
)
def test_the_head_leads_only_where_one_may_go(
    client: Client,
    request: pytest.FixtureRequest,
    person: str,
    shown: tuple[str, ...],
    hidden: tuple[str, ...],
) -> None:
    client.force_login(request.getfixturevalue(person))
    page = client.get("/replans/").text
    assert [url for url in shown if f'href="{url}"' not in page] == []
    assert [url for url in hidden if f'href="{url}"' in page] == []
