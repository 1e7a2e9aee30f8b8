"""A webhook as its owner and operators see it: rotation, off and on, the log, send again (W-1)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from audit.actors import person
from audit.models import Event
from plans import custody, receivers
from plans.clock import clock
from plans.models import Agent, Delivery, Plan, Webhook
from tests.approvals.paper_plans import MakePlan
from tests.approvals.webhook_addresses import ADD, LIST, URL, secrets_in
from tests.plans.receiver import happened, queued

pytestmark = pytest.mark.django_db


def test_another_owners_agent_is_not_there(
    sign_in: Callable[[User], Client], webhook: Webhook, ada: User, make_plan: MakePlan
) -> None:
    """Ada owns one, too: what is Dana's she neither sees nor touches (SEC-4)."""
    Agent.objects.create(name="adas-agent", owner=ada)
    delivery = queued(webhook, happened(make_plan()))
    client = sign_in(ada)
    page = client.get(LIST).text
    assert ("adas-agent" in page, "support-agent" in page, "93.184" in page) == (True, False, False)
    assert client.post(ADD, {"agent": "support-agent", "url": f"{URL}2"}).status_code == 422
    mine = f"{LIST}{webhook.pk}/"
    assert client.get(mine).status_code == 404
    for path, fields in (
        (f"{mine}switch/", {"to": "off"}),
        (f"{mine}rotation/", {"number": "1"}),
        (f"/settings/deliveries/{delivery.pk}/redelivery/", {}),
    ):
        assert client.post(path, fields).status_code == 404
    webhook.refresh_from_db()
    assert (webhook.on_since is not None, webhook.secret_number) == (True, 1)


def test_a_rotation_sent_twice_is_one(
    sign_in: Callable[[User], Client], webhook: Webhook, dana: User
) -> None:
    client, path = sign_in(dana), f"{LIST}{webhook.pk}/rotation/"
    answer = client.post(path, {"number": "1"})
    (secret,) = secrets_in(answer.text)
    again = client.post(path, {"number": "1"})
    assert (answer.status_code, again.status_code, secrets_in(again.text)) == (200, 409, [])
    stored = Webhook.objects.get()
    assert custody.decrypt(stored.secret or b"").decode() == secret
    assert bytes(stored.old_secret or b"") == bytes(webhook.secret or b"")
    assert "signs too, until" in client.get(f"{LIST}{webhook.pk}/").text
    assert Event.objects.filter(action="webhook.secret_rotated").count() == 1


@pytest.mark.parametrize("number", ["", "x", "-1", "1.0", "²", "9" * 40])
def test_a_rotation_names_the_secret_that_was_shown(
    sign_in: Callable[[User], Client], webhook: Webhook, dana: User, number: str
) -> None:
    answer = sign_in(dana).post(f"{LIST}{webhook.pk}/rotation/", {"number": number})
    assert answer.status_code == 422


def test_off_and_on_again(
    sign_in: Callable[[User], Client], webhook: Webhook, dana: User, otto: User
) -> None:
    path = f"{LIST}{webhook.pk}/switch/"
    assert sign_in(dana).post(path, {"to": "off"}).status_code == 302
    page = sign_in(otto).get(LIST).text
    assert "switched off by a person" in page
    sign_in(otto).post(path, {"to": "off"})
    sign_in(otto).post(path, {"to": "on"})
    told = Event.objects.filter(action__startswith="webhook.switched").order_by("id")
    assert list(told.values_list("action", "actor_label")) == [
        ("webhook.switched_off", "dana"),
        ("webhook.switched_on", "otto"),
    ]
    assert sign_in(otto).post(path, {"to": "sideways"}).status_code == 422


@pytest.mark.parametrize(("why", "words"), [("gone", "410"), ("exhausted", "for three days")])
def test_one_that_stopped_by_itself_is_told_on_every_page_of_it(
    sign_in: Callable[[User], Client], webhook: Webhook, otto: User, why: str, words: str
) -> None:
    Webhook.objects.update(on_since=None, off_at=clock(), off_reason=why)
    client = sign_in(otto)
    assert "1 stopped" in client.get("/settings/").text
    assert words in client.get(LIST).text
    page = client.get(f"{LIST}{webhook.pk}/").text
    assert ("Nothing is sent any more" in page, words in page) == (True, True)
    assert "Send again" not in page


def test_the_log_says_what_came_of_each(
    sign_in: Callable[[User], Client], webhook: Webhook, dana: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    delivery = queued(webhook, happened(plan))
    delivery.attempts.create(number=1, outcome="refused", http_status=503, elapsed_ms=12.3)
    fault = "tls: certificate has expired \u202e<i>"
    delivery.attempts.create(number=2, outcome="not_sent", fault=fault)
    page = sign_in(dana).get(f"{LIST}{webhook.pk}/").text
    for words in ("plan.committed", plan.plan_id, delivery.message_id, "refused, HTTP 503"):
        assert words in page
    assert ("\u202e" in page, "<i>" in page, "certificate has expired" in page) == (
        False,
        False,
        True,
    )


def test_send_again_makes_it_due(
    sign_in: Callable[[User], Client],
    webhook: Webhook,
    dana: User,
    make_plan: MakePlan,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Callable[..., Any],
) -> None:
    rung: list[int] = []
    monkeypatch.setattr("plans.tasks.deliver_webhook.delay", rung.append)
    delivery = queued(webhook, happened(make_plan()))
    Delivery.objects.update(status="delivered", next_attempt_at=None, closed_at=clock(), tries=3)
    with django_capture_on_commit_callbacks(execute=True):
        answer = sign_in(dana).post(f"/settings/deliveries/{delivery.pk}/redelivery/")
    assert (answer.status_code, rung) == (302, [webhook.pk])
    delivery.refresh_from_db()
    assert (delivery.status, delivery.tries) == ("waiting", 0)
    receivers.switch_off(webhook.pk, actor=person(dana))
    answer = sign_in(dana).post(f"/settings/deliveries/{delivery.pk}/redelivery/")
    assert (answer.status_code, "Switch it on first" in answer.text) == (409, True)


def test_a_long_log_is_read_in_pages(
    sign_in: Callable[[User], Client], webhook: Webhook, dana: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    deliveries = [queued(webhook, happened(plan)) for _ in range(60)]
    client, address, seen = sign_in(dana), f"{LIST}{webhook.pk}/", []
    query = ""
    for _ in range(3):
        page = client.get(f"{address}{query}").text
        seen += [int(pk) for pk in re.findall(r'id="delivery-(\d+)"', page)]
        query = (re.findall(r'href="(\?before=\d+)"', page) or [""])[0]
    assert seen == [delivery.pk for delivery in reversed(deliveries)]
    assert query == ""
    for odd in ("x", "-1", "9" * 40, "²", ""):
        assert client.get(f"{address}?before={odd}").status_code == 200


def test_more_of_them_cost_no_more_queries(
    sign_in: Callable[[User], Client],
    webhook: Webhook,
    otto: User,
    make_plan: MakePlan,
    django_assert_max_num_queries: Any,
) -> None:
    plan: Plan = make_plan()
    for number in range(20):
        agent = Agent.objects.create(name=f"agent-{number}", owner=otto)
        Webhook.objects.create(agent=agent, url="https://h.example/", on_since=clock())
        delivery = queued(webhook, happened(plan))
        for attempt in range(5):
            delivery.attempts.create(number=attempt, outcome="refused", http_status=500)
    client = sign_in(otto)
    with django_assert_max_num_queries(14):
        assert client.get(LIST).text.count("<article") == 21
    with django_assert_max_num_queries(14):
        assert client.get(f"{LIST}{webhook.pk}/").text.count('id="delivery-') == 20
