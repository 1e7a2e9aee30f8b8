"""Who adds a webhook, which addresses are refused, the secret this once (W-1, SEC-16)."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from audit.models import Event
from plans import custody, receivers
from plans.clock import clock
from plans.models import Agent, Webhook
from tests.approvals.webhook_addresses import ADD, LIST, URL, secrets_in

pytestmark = pytest.mark.django_db


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
