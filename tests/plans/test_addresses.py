"""SEC-15 and BI-51: which origins may be saved, and which addresses may be called."""

import socket
import threading
import time
from ipaddress import ip_address
from typing import Any

import pytest

from plans import addresses
from plans.addresses import (
    AddressRefused,
    ResolutionFailed,
    check_origin,
    resolve_checked,
    special_kind,
)


@pytest.mark.parametrize(
    ("base_url", "internal", "normal"),
    [
        ("https://billing.example", False, "https://billing.example"),
        ("https://billing.example/", False, "https://billing.example"),
        ("HTTPS://Billing.Example:443/V1/", False, "https://billing.example/V1"),
        ("https://billing.example:8443/v1/api", False, "https://billing.example:8443/v1/api"),
        ("https://xn--pple-43d.example", False, "https://xn--pple-43d.example"),
        ("https://93.184.216.34", False, "https://93.184.216.34"),
        ("https://[2606:4700:0:0::1111]", False, "https://[2606:4700::1111]"),
        ("http://127.0.0.1:8001", True, "http://127.0.0.1:8001"),
        ("http://localhost:80", True, "http://localhost"),
        ("http://[::1]:8001", True, "http://[::1]:8001"),
        ("http://billing_api:9000", True, "http://billing_api:9000"),
        ("https://10.1.2.3:9443", True, "https://10.1.2.3:9443"),
    ],
)
def test_an_origin_has_one_spelling(base_url: str, internal: bool, normal: str) -> None:
    assert str(check_origin(base_url, internal)) == normal


@pytest.mark.parametrize("internal", [False, True])
@pytest.mark.parametrize(
    ("base_url", "code"),
    [
        ("https://good@evil.example", "userinfo"),
        ("https://good:pw@evil.example", "userinfo"),
        ("https://good\\@evil.example", "backslash"),
        ("https:\\\\evil.example", "backslash"),
        ("https://evil.example#good", "fragment"),
        ("https://evil.example?x=1", "query"),
        ("https://%65vil.example", "percent-encoding"),
        ("https://evil.example/%2e%2e", "percent-encoding"),
        ("https://evil.example/a/../b", "odd-url"),
        ("https://evil.example//b", "odd-url"),
        ("https://①②⑦.⓪.⓪.①", "odd-url"),
        ("https://\N{CYRILLIC SMALL LETTER A}pple.com", "odd-url"),
        ("https://evil.example\n.good.example", "odd-url"),
        (" https://evil.example", "odd-url"),
        ("https://evil.example ", "odd-url"),
        ("https://", "odd-url"),
        ("https:///path", "odd-url"),
        ("//evil.example", "odd-url"),
        ("evil.example", "odd-url"),
        ("", "odd-url"),
        ("ftp://evil.example", "scheme"),
        ("file:///etc/passwd", "odd-url"),
        ("gopher://evil.example", "scheme"),
        ("https://evil..example", "odd-host"),
        ("https://evil.example.", "odd-host"),
        ("https://-evil.example", "odd-host"),
        ("https://" + "a" * 64 + ".example", "odd-host"),
        ("https://[127.0.0.1]", "odd-host"),
        ("https://[::1", "odd-url"),
        ("https://[fe80::1%25eth0]", "percent-encoding"),
        ("https://127.1", "numeric-host"),
        ("https://2130706433", "numeric-host"),
        ("https://0x7f000001", "numeric-host"),
        ("https://0x7f.0.0.1", "numeric-host"),
        ("https://0177.0.0.1", "numeric-host"),
        ("https://0", "numeric-host"),
        ("https://evil.example:0", "port"),
        ("https://evil.example:65536", "port"),
        ("https://evil.example:-1", "odd-url"),
        ("https://169.254.169.254", "link-local"),
        ("https://[::ffff:169.254.169.254]", "link-local"),
        ("https://[64:ff9b::a9fe:a9fe]", "link-local"),
        ("https://0.0.0.0", "unspecified"),
        ("https://[::]", "unspecified"),
        ("https://224.0.0.1", "multicast"),
        ("https://255.255.255.255", "reserved"),
    ],
)
def test_an_origin_that_can_be_misread_is_refused_everywhere(
    base_url: str, code: str, internal: bool
) -> None:
    with pytest.raises(AddressRefused) as refusal:
        check_origin(base_url, internal)
    assert refusal.value.code == code


@pytest.mark.parametrize(
    ("base_url", "code"),
    [
        ("http://billing.example", "https-required"),
        ("https://billing.example:22", "port"),
        ("https://billing.example:6379", "port"),
        ("https://localhost", "loopback"),
        ("https://api.localhost", "loopback"),
        ("https://127.0.0.1", "loopback"),
        ("https://127.8.9.10", "loopback"),
        ("https://[::1]", "loopback"),
        ("https://[::ffff:127.0.0.1]", "loopback"),
        ("https://[::ffff:7f00:1]", "loopback"),
        ("https://10.0.0.1", "private"),
        ("https://172.16.0.1", "private"),
        ("https://192.168.1.1", "private"),
        ("https://[fd00::1]", "private"),
        ("https://[2002:0a00:0001::]", "private"),
        ("https://100.64.0.1", "shared"),
    ],
)
def test_only_an_internal_target_may_be_close(base_url: str, code: str) -> None:
    with pytest.raises(AddressRefused) as refusal:
        check_origin(base_url, False)
    assert refusal.value.code == code
    assert code == "port" or "internal" in refusal.value.detail


def test_no_way_is_offered_to_what_nobody_may_call() -> None:
    for base_url in ("https://169.254.169.254", "https://[fe80::1]", "https://0.0.0.0"):
        with pytest.raises(AddressRefused) as refusal:
            check_origin(base_url, False)
        assert "internal" not in refusal.value.detail


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("8.8.8.8", None),
        ("172.32.0.1", None),
        ("100.128.0.1", None),
        ("2606:4700::1111", None),
        ("::ffff:8.8.8.8", None),
        ("64:ff9b::808:808", None),
        ("2002:808:808::1", None),
        ("198.18.0.1", "reserved"),
        ("192.0.0.8", "reserved"),
        ("240.0.0.1", "reserved"),
        ("2001:db8::1", "reserved"),
        ("64:ff9b:1::1", "reserved"),
        ("100::1", "reserved"),
        ("4000::1", "reserved"),
        ("fec0::1", "private"),
        ("fe80::1", "link-local"),
        ("ff02::1", "multicast"),
        ("::127.0.0.1", "loopback"),
        ("64:ff9b::7f00:1", "loopback"),
        ("64:ff9b::a9fe:a9fe", "link-local"),
        ("2002:a9fe:a9fe::1", "link-local"),
        ("2001:0:7f00:1::", "loopback"),
        ("2001:0:808:808:0:0:80ff:fffe", "loopback"),
        ("2001:0:808:808:0:0:f7f7:f7f7", "reserved"),
        ("2606:4700::5efe:a00:1", "private"),
    ],
)
def test_an_address_inside_an_address_is_found(address: str, kind: str | None) -> None:
    assert special_kind(ip_address(address)) == kind


@pytest.mark.parametrize(
    "host",
    ["127.1", "2130706433", "0x7f000001", "①②⑦.⓪.⓪.①", "localhost", "127.0.0.1", "::1", "0"],
)
def test_what_the_resolver_turns_into_a_local_address_is_refused_at_the_send(host: str) -> None:
    with pytest.raises(AddressRefused):
        resolve_checked(host, 443, internal=False, timeout=5)


def test_an_internal_target_resolves_to_this_machine() -> None:
    assert resolve_checked("127.0.0.1", 8001, internal=True, timeout=5) == [("127.0.0.1", 8001)]
    assert resolve_checked("::1", 8001, internal=True, timeout=5) == [("::1", 8001, 0, 0)]
    assert ("127.0.0.1", 8001) in resolve_checked("localhost", 8001, internal=True, timeout=5)


def answers(*found: str) -> Any:
    """A resolver that knows these addresses for every name: DNS is somebody else's machine."""

    def getaddrinfo(host: str, port: int, **_: object) -> list[Any]:
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (address, port, 0, 0))
            if ":" in address
            else (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in found
        ]

    return getaddrinfo


def test_one_bad_address_among_good_ones_refuses_the_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", answers("93.184.216.34", "169.254.169.254"))
    with pytest.raises(AddressRefused):
        resolve_checked("billing.example", 443, internal=False, timeout=5)


def test_a_name_that_flips_to_a_local_address_is_refused_at_the_next_send(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", answers("93.184.216.34"))
    good = resolve_checked("billing.example", 443, internal=False, timeout=5)
    assert good == [("93.184.216.34", 443)]
    monkeypatch.setattr(socket, "getaddrinfo", answers("::ffff:127.0.0.1"))
    with pytest.raises(AddressRefused):
        resolve_checked("billing.example", 443, internal=False, timeout=5)


def test_a_zone_does_not_hide_a_link_local_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", answers("fe80::1%eth0"))
    with pytest.raises(AddressRefused):
        resolve_checked("billing.example", 443, internal=True, timeout=5)


@pytest.mark.parametrize("host", ["no-such-name.invalid", "a" * 300, "", "a..b"])
def test_a_name_without_an_address_fails_to_resolve(host: str) -> None:
    with pytest.raises((ResolutionFailed, AddressRefused)):
        resolve_checked(host, 443, internal=False, timeout=10)


def test_a_resolver_that_hangs_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: release.wait(10) and [])
    started = time.monotonic()
    with pytest.raises(ResolutionFailed):
        resolve_checked("billing.example", 443, internal=False, timeout=0.1)
    assert time.monotonic() - started < 5
    release.set()


def test_no_more_than_so_many_lookups_hang_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "LOOKUPS_AT_ONCE", threading.BoundedSemaphore(1))
    release = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: release.wait(10) and [])
    for words in ("did not answer in time", "too many lookups"):
        with pytest.raises(ResolutionFailed, match=words):
            resolve_checked("billing.example", 443, internal=False, timeout=0.05)
    release.set()
