"""T-4 and T-5 under TLS: whom we believe, and the same clock and doubts one layer up."""

import datetime
import ipaddress
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from plans import gateway
from plans.gateway import Answer, NoAnswer, NotSent, exchange
from tests.faults.calls import COMMIT, IMPATIENT, endpoint
from tests.faults.raw_target import APPLIED, RawTarget


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
        result = exchange(endpoint(target.base_url, **IMPATIENT.get(reason, {})), COMMIT)
    assert isinstance(result, NoAnswer)
    assert result.reason == reason
    assert time.monotonic() - started < 10
