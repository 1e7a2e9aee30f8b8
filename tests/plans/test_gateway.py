"""T-3, T-4, T-5 and FM-1…FM-8, FM-21 on real sockets: how a call to a target ends."""

import datetime
import ipaddress
import socket
import ssl
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.db import transaction

from plans import gateway
from plans.custody import Secret
from plans.gateway import Answer, Call, Endpoint, Exchange, NoAnswer, NotSent, exchange
from plans.outcomes import Kind, classify
from tests.faults.raw_target import APPLIED, RawTarget, refused_port

COMMIT = Call(
    "POST",
    "/refund/commit",
    b'{"plan_token":"tok_secret_secret","input_fingerprint":"sha256:1"}',
    {"Idempotency-Key": "idem_1", "Plan-Id": "plan_1", "Attempt": "1"},
)


def endpoint(base_url: str, **changes: float) -> Endpoint:
    times = {"connect_timeout": 1.0, "read_timeout": 0.3, "total_timeout": 0.8} | changes
    return Endpoint(base_url, internal=True, credential=Secret("cred-of-the-app"), **times)


def call(mode: str, **changes: float) -> Exchange:
    with RawTarget(mode) as target:
        return exchange(endpoint(target.base_url, **changes), COMMIT)


@pytest.mark.parametrize(
    "mode",
    [
        "ok",
        "ok-kept-open",
        "ok-then-reset",
        "ok-chunked",
        "ok-chunk-extension",
        "ok-without-length",
        "ok-after-hints",
        "ok-twice-named",
    ],
)
def test_a_whole_answer_is_an_answer(mode: str) -> None:
    answer = call(mode)
    assert isinstance(answer, Answer)
    assert (answer.status, answer.body) == (200, APPLIED)
    assert answer.elapsed_ms > 0


def test_header_names_are_lower_case_and_repeated_values_joined() -> None:
    answer = call("ok-twice-named")
    assert isinstance(answer, Answer)
    assert answer.headers["x-part"] == "a, b"
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("accept-then-reset", "reset"),
        ("read-then-reset", "reset"),
        ("reset-in-body", "reset"),
        ("read-then-close", "closed"),
        ("hang", "timeout"),
        ("hang-after-head", "timeout"),
        ("drip-head", "deadline"),
        ("drip-body", "deadline"),
        ("drip-hints", "deadline"),
        ("cut-in-status", "truncated"),
        ("cut-in-header", "truncated"),
        ("cut-after-header-line", "truncated"),
        ("short-content-length", "truncated"),
        ("cut-chunk", "truncated"),
        ("cut-before-last-chunk", "truncated"),
        ("cut-in-trailer", "truncated"),
        ("garbage", "malformed"),
        ("http-2", "malformed"),
        ("switching-101", "malformed"),
        ("bare-cr-in-header", "malformed"),
        ("bare-lf-in-header", "malformed"),
        ("nul-in-header", "malformed"),
        ("space-in-header-name", "malformed"),
        ("folded-header", "malformed"),
        ("no-colon-in-header", "malformed"),
        ("two-lengths", "malformed"),
        ("signed-length", "malformed"),
        ("length-and-chunks", "malformed"),
        ("unknown-coding", "malformed"),
        ("negative-chunk", "malformed"),
        ("hex-prefixed-chunk", "malformed"),
        ("chunk-overrun", "malformed"),
        ("http-0.9", "truncated"),
        ("big-with-length", "too-large"),
        ("big-length-only", "too-large"),
        ("big-chunked", "too-large"),
        ("big-without-length", "too-large"),
        ("big-header", "too-large"),
        ("many-headers", "too-large"),
    ],
)
def test_a_broken_answer_is_no_answer_and_says_why(mode: str, reason: str) -> None:
    started = time.monotonic()
    broken = call(mode)
    assert isinstance(broken, NoAnswer)
    assert broken.reason == reason
    assert broken.elapsed_ms > 0
    assert time.monotonic() - started < 2.5
    judged = classify(broken, plan_id="plan_1", earlier_unknown=False)
    assert judged.kind is Kind.UNKNOWN


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("ok", Kind.APPLIED),
        ("html-200", Kind.UNKNOWN),
        ("empty-200", Kind.UNKNOWN),
        ("empty-204", Kind.UNKNOWN),
        ("cut-without-length", Kind.UNKNOWN),
        ("redirect-307", Kind.UNKNOWN),
        ("conflict-409", Kind.CONFLICTED),
        ("bare-409", Kind.UNKNOWN),
        ("in-progress-409", Kind.UNKNOWN),
        ("late-410", Kind.EXPIRED),
        ("refused-422", Kind.FAILED),
        ("busy-429", Kind.RETRY_LATER),
        ("down-503", Kind.UNKNOWN),
    ],
)
def test_what_a_whole_answer_proves(mode: str, kind: Kind) -> None:
    answer = call(mode)
    assert isinstance(answer, Answer)
    assert classify(answer, plan_id="plan_1", earlier_unknown=False).kind is kind


def test_a_connection_closed_before_the_request_was_read_is_not_proof_of_anything() -> None:
    assert isinstance(call("accept-then-close"), NoAnswer)


def test_a_refusal_that_comes_before_the_body_was_sent_is_heard() -> None:
    with RawTarget("early-413") as target:
        big = Call("POST", "/refund/commit", b"x" * 4_000_000)
        answer = exchange(endpoint(target.base_url), big)
    assert isinstance(answer, Answer)
    assert answer.status == 413


def test_a_redirect_is_not_followed() -> None:
    with RawTarget("redirect-307") as target:
        answer = exchange(endpoint(target.base_url), COMMIT)
        assert isinstance(answer, Answer)
        assert (answer.status, target.connections) == (307, 1)


def test_nothing_is_sent_twice() -> None:
    with RawTarget("read-then-close") as target:
        exchange(endpoint(target.base_url), COMMIT)
        assert (target.connections, len(target.requests)) == (1, 1)


def test_the_request_is_exactly_what_the_contract_says() -> None:
    with RawTarget("ok") as target:
        exchange(endpoint(target.base_url + "/v1/"), COMMIT)
        top, _, body = target.requests[0].partition(b"\r\n\r\n")
    lines = top.decode().split("\r\n")
    assert lines[0] == "POST /v1/refund/commit HTTP/1.1"
    assert body == COMMIT.body
    assert sorted(lines[1:]) == [
        "Accept-Encoding: identity",
        "Accept: application/json, application/problem+json",
        "Attempt: 1",
        "Authorization: Bearer cred-of-the-app",
        "Connection: close",
        f"Content-Length: {len(body)}",
        "Content-Type: application/json",
        f"Host: 127.0.0.1:{target.port}",
        "Idempotency-Key: idem_1",
        "Plan-Id: plan_1",
        "User-Agent: Countersign",
    ]


def test_a_read_has_no_body_and_a_target_without_a_credential_gets_none() -> None:
    with RawTarget("ok") as target:
        exchange(Endpoint(target.base_url, internal=True), Call("GET", "/plans/plan_1"))
        sent = target.requests[0].decode().lower()
    assert sent.startswith("get /plans/plan_1 http/1.1")
    assert "content-" not in sent
    assert "authorization" not in sent


# Before the first byte: not sent


def test_a_refused_connection_is_not_sent() -> None:
    result = exchange(endpoint(f"http://127.0.0.1:{refused_port()}"), COMMIT)
    assert isinstance(result, NotSent)
    assert (result.reason, result.detail) == ("connect", "Connection refused")


def test_a_connection_that_never_stands_is_not_sent() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            result = exchange(endpoint(f"http://127.0.0.1:{port}", connect_timeout=0.2), COMMIT)
    assert result == NotSent("connect", "no connection in time")


def test_an_unknown_name_is_not_sent() -> None:
    result = exchange(endpoint("http://no-such-name.invalid"), COMMIT)
    assert isinstance(result, NotSent)
    assert result.reason == "dns"


@pytest.mark.parametrize(
    "base_url",
    [
        "https://127.0.0.1",
        "https://localhost",
        "https://[::ffff:169.254.169.254]",
        "https://2130706433",
        "https://good@evil.example",
        "http://billing.example",
    ],
)
def test_a_target_outside_never_reaches_inside(base_url: str) -> None:
    result = exchange(Endpoint(base_url, internal=False), COMMIT)
    assert isinstance(result, NotSent)
    assert result.reason == "address-blocked"


def test_a_name_that_turned_local_is_blocked_at_the_send(monkeypatch: pytest.MonkeyPatch) -> None:
    with RawTarget("ok") as target:
        flipped = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", target.port))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: flipped)
        result = exchange(Endpoint("https://billing.example", internal=False), COMMIT)
        assert (isinstance(result, NotSent), target.connections) == (True, 0)


@pytest.mark.parametrize(
    "changes",
    [
        {"headers": {"Idempotency-Key": "a\r\nX: y"}},
        {"headers": {"Idempotency-Key": "a\n"}},
        {"headers": {"Idempotency-Key": "é"}},
        {"headers": {"X\r\nY": "a"}},
        {"headers": {"": "a"}},
        {"headers": {"HOST": "evil.example"}},
        {"headers": {"Authorization": "Bearer other"}},
        {"headers": {"Transfer-Encoding": "chunked"}},
        {"headers": {"Content-Length": "0"}},
        {"headers": {"Accept-Encoding": "gzip"}},
        {"path": "/a b"},
        {"path": "/a\r\nX: y"},
        {"path": "//evil.example/"},
        {"path": "http://evil.example/"},
        {"path": "/a#b"},
        {"path": ""},
        {"method": "GET /x HTTP/1.1\r\n"},
        {"method": "get"},
    ],
)
def test_a_request_that_could_be_read_as_two_is_not_sent(changes: dict[str, object]) -> None:
    parts: dict[str, object] = {"method": "POST", "path": "/a", "headers": {}} | changes
    with RawTarget("ok") as target:
        result = exchange(endpoint(target.base_url), Call(**parts))  # type: ignore[arg-type]
        assert target.connections == 0
    assert isinstance(result, NotSent)
    assert result.reason == "invalid-request"


def test_a_credential_with_a_line_break_is_not_sent_and_not_shown() -> None:
    bad = Endpoint("http://127.0.0.1:1", internal=True, credential="cred\r\nX: y")
    result = exchange(bad, COMMIT)
    assert isinstance(result, NotSent)
    assert result.reason == "invalid-request"
    assert "cred" not in repr(result)


def test_a_deadline_that_has_passed_sends_nothing() -> None:
    with RawTarget("ok") as target:
        result = exchange(endpoint(target.base_url), COMMIT, deadline=time.monotonic() - 1)
        assert (isinstance(result, NotSent), target.connections) == (True, 0)


def test_a_deadline_that_passes_between_connection_and_first_byte_sends_nothing() -> None:
    with RawTarget("read-then-close") as target:
        result = exchange(
            endpoint(target.base_url, total_timeout=0.2),
            COMMIT,
            on_connected=lambda: time.sleep(0.3),
        )
    assert isinstance(result, NotSent)
    assert b"".join(target.requests) == b""


def test_what_the_last_check_raises_stops_the_send() -> None:
    class LeaseLost(Exception):
        pass

    def check() -> None:
        raise LeaseLost

    with RawTarget("read-then-close") as target, pytest.raises(LeaseLost):
        exchange(endpoint(target.base_url), COMMIT, on_connected=check)
    assert b"".join(target.requests) == b""


def test_the_callers_deadline_shortens_the_total_time() -> None:
    with RawTarget("hang") as target:
        started = time.monotonic()
        slow = endpoint(target.base_url, read_timeout=30, total_timeout=45)
        result = exchange(slow, COMMIT, deadline=started + 0.2)
        assert time.monotonic() - started < 1
    assert isinstance(result, NoAnswer)
    assert result.reason == "deadline"


def test_a_target_that_does_not_read_cannot_hold_the_send() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        started = time.monotonic()
        result = exchange(endpoint(url), Call("POST", "/a", b"x" * 16_000_000))
        assert time.monotonic() - started < 2
    assert isinstance(result, NoAnswer)
    assert result.reason == "timeout"


# Clocks, transactions, secrets, speed


@pytest.mark.parametrize(
    ("mode", "skew"), [("ok-dated", 0), ("ok-hour-off", 3600), ("ok-odd-date", None), ("ok", None)]
)
def test_the_targets_clock_is_compared_with_ours(mode: str, skew: float | None) -> None:
    answer = call(mode)
    assert isinstance(answer, Answer)
    expected = None if skew is None else pytest.approx(skew, abs=120)
    assert answer.date_skew_seconds == expected


@pytest.mark.django_db(transaction=True)
def test_no_call_is_made_inside_a_transaction() -> None:
    with RawTarget("ok") as target:
        with transaction.atomic(), pytest.raises(RuntimeError, match="T-3"):
            exchange(endpoint(target.base_url), COMMIT)
        assert target.connections == 0
        assert isinstance(exchange(endpoint(target.base_url), COMMIT), Answer)


@pytest.mark.django_db
def test_only_a_setting_of_the_tests_allows_it(settings: object) -> None:
    settings.GATEWAY_ALLOW_IN_TRANSACTION = True  # type: ignore[attr-defined]
    assert isinstance(call("ok"), Answer)


def test_no_repr_shows_a_token_a_credential_or_a_body() -> None:
    plain = Endpoint("http://127.0.0.1:1", internal=True, credential="cred-of-the-app")
    shown = repr((plain, COMMIT, call("ok"), call("cut-chunk"), exchange(plain, COMMIT)))
    for secret in ("cred-of-the-app", "tok_secret", "plan_1"):
        assert secret not in shown


def test_a_call_on_loopback_takes_well_under_a_few_milliseconds() -> None:
    with RawTarget("ok") as target:
        here = endpoint(target.base_url)
        times = [exchange(here, COMMIT).elapsed_ms for _ in range(50)]  # type: ignore[union-attr]
    assert statistics.median(times) < 20


def test_many_threads_may_call_at_once() -> None:
    results: list[Exchange] = []
    with RawTarget("ok") as target:
        here = endpoint(target.base_url, read_timeout=5, total_timeout=10)
        work = [
            threading.Thread(target=lambda: results.append(exchange(here, COMMIT)))
            for _ in range(20)
        ]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
    assert [isinstance(each, Answer) for each in results] == [True] * 20


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1, with its key in the same file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "billing")])
    now = datetime.datetime.now(datetime.UTC)
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(alternative, critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "billing.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(built.public_bytes(serialization.Encoding.PEM) + private)
    return path


@pytest.fixture
def server_tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.fixture
def trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The operator trusts the target's certificate by `SSL_CERT_FILE`."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    gateway._tls.cache_clear()
    yield
    gateway._tls.cache_clear()


@pytest.mark.usefixtures("trusted")
def test_tls_with_a_trusted_certificate_works(server_tls: ssl.SSLContext) -> None:
    with RawTarget("ok", tls=server_tls) as target:
        answer = exchange(endpoint(target.base_url), COMMIT)
    assert isinstance(answer, Answer)
    assert answer.body == APPLIED


def test_a_certificate_nobody_trusts_is_not_sent(server_tls: ssl.SSLContext) -> None:
    with RawTarget("ok", tls=server_tls) as target:
        result = exchange(endpoint(target.base_url), COMMIT)
    assert isinstance(result, NotSent)
    assert result.reason == "tls"
    assert "self-signed" in result.detail


@pytest.mark.usefixtures("trusted")
def test_a_certificate_for_another_name_is_not_sent(server_tls: ssl.SSLContext) -> None:
    with RawTarget("ok", tls=server_tls) as target:
        result = exchange(endpoint(f"https://localhost:{target.port}"), COMMIT)
    assert isinstance(result, NotSent)
    assert result.reason == "tls"


@pytest.mark.parametrize("mode", ["garbage", "accept-then-reset", "accept-then-close", "hang"])
def test_a_handshake_that_fails_is_not_sent(mode: str) -> None:
    with RawTarget(mode) as target:
        url = target.base_url.replace("http:", "https:")
        result = exchange(endpoint(url, connect_timeout=0.3), COMMIT)
    assert isinstance(result, NotSent)
    assert result.reason == "tls"


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("hang", "timeout"),
        ("drip-head", "deadline"),
        ("drip-body", "deadline"),
        ("short-content-length", "truncated"),
        # Without TLS's own goodbye nobody knows that the body is whole.
        ("ok-without-length", "truncated"),
    ],
)
def test_tls_keeps_the_same_clock_and_the_same_doubts(
    mode: str, reason: str, server_tls: ssl.SSLContext
) -> None:
    started = time.monotonic()
    with RawTarget(mode, tls=server_tls) as target:
        result = exchange(endpoint(target.base_url), COMMIT)
    assert isinstance(result, NoAnswer)
    assert result.reason == reason
    assert time.monotonic() - started < 2.5
