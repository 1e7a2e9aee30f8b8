"""Where a webhook may lead, asked at the save and again at every send (BI-51, SEC-15)."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from audit import actors
from plans import receivers
from plans.addresses import AddressRefused
from plans.clock import clock
from plans.errors import AddressNotAllowed
from plans.models import Agent, Plan, Webhook
from plans.webhook_addresses import Address
from plans.webhooks import deliver
from tests.plans.receiver import Receiver, happened, queued

REFUSED = {
    "http://127.1": "https-required",
    "http://[::ffff:169.254.169.254]": "https-required",
    "https://127.1": "numeric-host",
    "https://[::ffff:169.254.169.254]/": "link-local",
    "https://2130706433/": "numeric-host",
    "https://0x7f000001/": "numeric-host",
    "https://0/": "numeric-host",
    "https://good@evil.example/": "userinfo",
    "https://good:pw@evil.example/": "userinfo",
    "https://good\\@evil.example/": "backslash",
    "https:\\\\evil.example/": "odd-url",
    "https:/evil.example/": "odd-url",
    "//evil.example/": "odd-url",
    "https://evil.example#@good.example/": "fragment",
    "https://evil.example/\n": "odd-url",
    "https://evil.example/ HTTP/1.1": "odd-url",
    "https://evil.example/%0d%0aX:y\r\n": "odd-url",
    "https://evil.example?x=1": "odd-url",
    "https://evil.example//x": "odd-url",
    "https://evil.example/../x": "odd-url",
    "https://evil.example:99999/": "port",
    "https://evil.example:0/": "port",
    "https://evil.example:80/": "port",
    "https://%65vil.example/": "percent-encoding",
    "gopher://evil.example/": "scheme",
    "file:///etc/passwd": "odd-url",
    "https://localhost/": "loopback",
    "https://metadata.localhost/": "loopback",
    "https://10.0.0.1/": "private",
    "https://100.64.0.1/": "shared",
    "https://[fd00::1]/": "private",
    "https://[64:ff9b::7f00:1]/": "loopback",
    "https://192.0.2.1/": "reserved",
    "https://evil.example/" + "x" * 500: "too-long",
}


@pytest.mark.parametrize("url", REFUSED)
def test_it_refuses(url: str) -> None:
    with pytest.raises(AddressRefused) as refused:
        Address.parse(url, internal=False)
    assert refused.value.code == REFUSED[url]


@pytest.mark.parametrize(
    ("url", "spelt"),
    [
        ("https://hooks.example", "https://hooks.example/"),
        ("HTTPS://Hooks.Example:443/A?b=%20c&d=/e", "https://hooks.example/A?b=%20c&d=/e"),
        ("https://hooks.example:8443/a@b", "https://hooks.example:8443/a@b"),
        ("https://[2606:2800:220:1::1]/x", "https://[2606:2800:220:1::1]/x"),
        ("https://hooks.example/a?to=../..", "https://hooks.example/a?to=../.."),
    ],
)
def test_it_has_one_spelling(url: str, spelt: str) -> None:
    assert str(Address.parse(url, internal=False)) == spelt


def test_inside_http_and_any_port_are_fine_and_metadata_is_not() -> None:
    assert str(Address.parse("http://10.1.2.3:9000/h", internal=True)) == "http://10.1.2.3:9000/h"
    with pytest.raises(AddressRefused):
        Address.parse("http://169.254.169.254/", internal=True)


def answers(*ips: str) -> Callable[..., list[Any]]:
    return lambda *_, **__: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, 443)) for ip in ips]


@pytest.mark.django_db
@pytest.mark.usefixtures("calls_in_the_tests_transaction")
@pytest.mark.parametrize("turned", ["127.0.0.1", "10.0.0.1", "169.254.169.254"])
def test_a_name_that_turned_is_blocked_at_the_send(
    turned: str,
    support_agent: Agent,
    make_plan: Callable[..., Plan],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", answers("93.184.216.34"))
    webhook, _ = receivers.add(
        support_agent, "https://hooks.example/", internal=False, actor=actors.OPERATOR
    )
    delivery = queued(webhook, happened(make_plan()))
    monkeypatch.setattr(socket, "getaddrinfo", answers("93.184.216.34", turned))
    assert deliver(webhook.pk) == 0
    attempt = delivery.attempts.get()
    assert (attempt.outcome, attempt.fault[:16]) == ("not_sent", "address-blocked:")


@pytest.mark.django_db
@pytest.mark.parametrize("turned", ["127.0.0.1", "10.0.0.1", "169.254.169.254"])
def test_a_name_that_leads_inside_is_not_saved(
    turned: str, support_agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", answers("93.184.216.34", turned))
    with pytest.raises(AddressNotAllowed):
        receivers.add(
            support_agent, "https://hooks.example/", internal=False, actor=actors.OPERATOR
        )
    assert not Webhook.objects.exists()


@pytest.mark.django_db
@pytest.mark.usefixtures("calls_in_the_tests_transaction")
def test_a_row_that_somebody_edited_is_blocked_at_the_send(
    support_agent: Agent, make_plan: Callable[..., Plan]
) -> None:
    """The database is not trusted with where secrets and events go either."""
    with Receiver() as receiver:
        webhook, _ = receivers.add(
            support_agent, receiver.url, internal=True, actor=actors.OPERATOR
        )
        for columns in (
            {"internal": False},
            {"url": receiver.url.replace("//", "//good@")},
            {"url": "http://127.0.0.1\\@evil.example/"},
        ):
            Webhook.objects.filter(pk=webhook.pk).update(not_before=None, **columns)
            delivery = queued(webhook, happened(make_plan()))
            assert deliver(webhook.pk) == 0
            assert delivery.attempts.get().fault.startswith("address-blocked")
            delivery.attempts.all().delete()
            delivery.delete()
            Webhook.objects.filter(pk=webhook.pk).update(internal=True, url=receiver.url)
        assert receiver.connections == 0
        queued(webhook, happened(make_plan()))
        Webhook.objects.filter(pk=webhook.pk).update(not_before=clock())
        assert deliver(webhook.pk) == 1
