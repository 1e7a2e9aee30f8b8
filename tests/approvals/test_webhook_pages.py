"""Webhooks as people set them: who may, the secret this once, the log, send again (W-1, SEC-16)."""

from __future__ import annotations

import re
import socket
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
from tests.plans.receiver import happened, queued

pytestmark = pytest.mark.django_db
LIST, ADD = "/settings/webhooks/", "/settings/webhooks/addition/"
URL = "https://93.184.216.34/hook?key=of-the-receiver"


@pytest.fixture
def sign_in(client: Client) -> Callable[[User], Client]:
    def as_person(person: User) -> Client:
        client.force_login(person)
        return client

    return as_person


@pytest.fixture
def webhook(support_agent: Agent, otto: User) -> Webhook:
    return receivers.add(support_agent, URL, internal=False, actor=person(otto))[0]


def secrets_in(page: str) -> list[str]:
    return re.findall(r"whsec_[A-Za-z0-9+/=]+", page.replace("&#x2F;", "/"))


# ── adding ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("person", ["dana", "otto"])
def test_owner_and_operator_add_one_and_see_its_secret_once(
    client: Client, request: pytest.FixtureRequest, support_agent: Agent, person: str
) -> None:
    client.force_login(request.getfixturevalue(person))
    answer = client.post(ADD, {"agent": "support-agent", "url": f" {URL} "})
    webhook = Webhook.objects.get()
    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store")
    (secret,) = secrets_in(answer.text)
    assert custody.decrypt(webhook.secret or b"").decode() == secret
    assert secret.encode() not in bytes(webhook.secret or b"")
    for page in (LIST, f"{LIST}{webhook.pk}/"):
        shown = client.get(page).text
        assert "93.184.216.34" in shown
        assert secrets_in(shown) == []
    event = Event.objects.get(action="webhook.added")
    assert (event.actor_label, event.agent) == (person, "support-agent")
    # The path may hold what only the receiver should know.
    assert event.details["address"] == "https://93.184.216.34"
    assert "of-the-receiver" not in str(event.details)


def test_sent_twice_it_is_one(
    sign_in: Callable[[User], Client], webhook: Webhook, dana: User
) -> None:
    answer = sign_in(dana).post(ADD, {"agent": "support-agent", "url": URL})
    assert (answer.status_code, Webhook.objects.count()) == (409, 1)
    assert "has a webhook with this address already" in answer.text


BAD = {
    "": "Write it as",
    "hooks.example.com": "Write it as",
    "ftp://93.184.216.34/": "Only https",
    "javascript:alert(1)": "Write it as",
    "http://93.184.216.34/": "needs https",
    "https://good@93.184.216.34/": "no user name",
    "https://good\\@93.184.216.34/": "backslash",
    "https://93.184.216.34/#x": "no fragment",
    "https://93.184.216.34:22/": "Port 22",
    "https://93.184.216.34/a b": "cannot hold",
    "https://93.184.216.34/\r\nX: y": "Write it as",
    "https://93.184.216.34/\x00": "cannot hold",
    "https://93.184.216.34//evil": "cannot hold",
    "https://93.184.216.34/a/../b": "cannot hold",
    "https://93.184.216.34/é": "cannot hold",
    "https://127.0.0.1/": "this machine",
    "https://127.1/": "four decimal numbers",
    "https://2130706433/": "four decimal numbers",
    "https://0x7f000001/": "four decimal numbers",
    "https://localhost/": "this machine",
    "https://10.0.0.7/": "private address",
    "https://100.64.0.1/": "private address",
    "https://169.254.169.254/latest/meta-data": "link-local",
    "https://[::1]/": "this machine",
    "https://[::ffff:169.254.169.254]/": "link-local",
    "https://[64:ff9b::a9fe:a9fe]/": "link-local",
    "https://\u2460\u2461\u2466.\u24ea.\u24ea.\u2460/": "Write it as",
    "https://\u0430pple.com/": "Write it as",
    "https://no-such-name.invalid/": "cannot be looked up",
    "https://93.184.216.34/" + "x" * 500: "at most 500",
}


@pytest.mark.parametrize("url", BAD)
def test_an_address_that_is_not_called_is_refused_beside_the_form(
    sign_in: Callable[[User], Client], support_agent: Agent, dana: User, url: str
) -> None:
    """BI-51, at the save; every send asks again."""
    answer = sign_in(dana).post(ADD, {"agent": "support-agent", "url": url})
    assert (answer.status_code, Webhook.objects.count()) == (422, 0)
    assert BAD[url] in answer.text
    assert 'role="alert"' in answer.text
    assert not Event.objects.filter(action="webhook.added").exists()


def test_a_name_that_leads_inside_is_refused(
    sign_in: Callable[[User], Client],
    support_agent: Agent,
    dana: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every address of the name is checked: one that is half local is an attack."""
    rows = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, 443))
        for ip in ("93.184.216.34", "10.0.0.1")
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: rows)
    answer = sign_in(dana).post(ADD, {"agent": "support-agent", "url": "https://rebind.example/"})
    assert answer.status_code == 422
    assert "private address" in answer.text


@pytest.mark.parametrize("name", ["", "nobody", "support-agent\x00", "\ufffd", "x" * 5000])
def test_an_agent_that_is_not_there_is_not_chosen(
    sign_in: Callable[[User], Client], support_agent: Agent, otto: User, name: str
) -> None:
    answer = sign_in(otto).post(ADD, {"agent": name, "url": f"{URL}\x00"})
    assert (answer.status_code, "Choose one of your agents" in answer.text) == (422, True)


def test_only_operators_open_the_inside(
    sign_in: Callable[[User], Client], support_agent: Agent, dana: User, otto: User
) -> None:
    inside = {"agent": "support-agent", "url": "http://10.1.2.3:9000/h", "internal": "on"}
    assert sign_in(dana).post(ADD, inside).status_code == 403
    assert 'name="internal"' not in sign_in(dana).get(LIST).text
    assert sign_in(otto).post(ADD, inside).status_code == 200
    assert Webhook.objects.get().internal is True
    metadata = inside | {"url": "http://169.254.169.254/"}
    assert sign_in(otto).post(ADD, metadata).status_code == 422


def test_what_was_typed_stays_in_the_form(
    sign_in: Callable[[User], Client], support_agent: Agent, otto: User
) -> None:
    page = sign_in(otto).post(ADD, {"agent": "support-agent", "url": 'https://"><b>x'}).text
    assert "&quot;&gt;&lt;b&gt;x" in page
    assert "<b>x" not in page


def test_for_machines_a_refusal_is_a_problem(
    sign_in: Callable[[User], Client], support_agent: Agent, otto: User
) -> None:
    headers = {"Accept": "application/problem+json"}
    answer = sign_in(otto).post(ADD, {"agent": "support-agent", "url": "x"}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "address-not-allowed")


def test_ten_are_enough_for_an_agent(
    sign_in: Callable[[User], Client], support_agent: Agent, dana: User
) -> None:
    for number in range(receivers.MOST_PER_AGENT):
        Webhook.objects.create(agent=support_agent, url=f"https://h/{number}", on_since=clock())
    answer = sign_in(dana).post(ADD, {"agent": "support-agent", "url": URL})
    assert (answer.status_code, "switch one off first" in answer.text) == (422, True)


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


# ── rotating, switching ──────────────────────────────────────────────────────────────────────


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


# ── the log ──────────────────────────────────────────────────────────────────────────────────


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
