"""Who may ask what, and what is refused before anything is looked at."""

import http.client
import json

import httpx
import pytest

from tests.demo.billing_process import AGENT_TOKEN, APP_TOKEN, Target

ONLY_APP = [
    ("POST", "/refund/commit"),
    ("POST", "/invoices/4412/external_refund"),
    ("POST", "/_faults"),
    ("GET", "/_ledger"),
]
EITHER = [
    ("POST", "/refund/dry_run"),
    ("GET", "/plans/plan_0000000000000000"),
    ("GET", "/invoices/4412"),
    ("GET", "/invoices"),
    ("POST", "/invoices"),
]


@pytest.mark.parametrize(("method", "path"), ONLY_APP + EITHER)
@pytest.mark.parametrize("header", [None, "Bearer", "Bearer wrong", f"Basic {APP_TOKEN}"])
def test_nobody_gets_in_without_a_token(
    target: Target, method: str, path: str, header: str | None
) -> None:
    headers = {"Authorization": header} if header else {}
    url = f"{target.url}{path}"
    answer = httpx.request(method, url, json={}, headers=headers, trust_env=False)
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")


@pytest.mark.parametrize(("method", "path"), ONLY_APP)
def test_the_agent_is_kept_from_what_is_the_apps(target: Target, method: str, path: str) -> None:
    answer = target.agent.request(method, path, json={})
    assert answer.status_code == 403
    assert AGENT_TOKEN not in answer.text


def test_anyone_may_ask_if_it_lives(target: Target) -> None:
    assert httpx.get(f"{target.url}/health/live", trust_env=False).status_code == 200


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b'{"a":1,"a":2}',
        b'{"a":NaN}',
        b'{"a":1}x',
        b"\xef\xbb\xbf{}",
        b'{"a":"\xff"}',
        b"[" * 30_000,
    ],
)
def test_it_refuses_what_is_not_strict_json(target: Target, raw: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    answer = target.agent.post("/refund/dry_run", content=raw, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed-json")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/json", "Content-Encoding": "gzip"}, 415),
        ({"Content-Type": "application/json", "Content-Length": "99999999999"}, 413),
        ({"Content-Type": "application/json", "Content-Length": "70000"}, 413),
        ({"Content-Type": "application/json", "Content-Length": "-1"}, 411),
        ({"Content-Type": "application/json", "Transfer-Encoding": "chunked"}, 411),
    ],
)
def test_it_refuses_a_body_it_will_not_read(
    target: Target, headers: dict[str, str], status: int
) -> None:
    connection = http.client.HTTPConnection(target.url.removeprefix("http://"), timeout=5)
    try:
        connection.putrequest("POST", "/refund/dry_run")
        sent = {"Content-Length": "2", "Authorization": f"Bearer {AGENT_TOKEN}"} | headers
        for name, value in sent.items():
            connection.putheader(name, value)
        connection.endheaders(b"{}")
        answer = connection.getresponse()
        assert answer.status == status
        assert json.loads(answer.read())["status"] == status
    finally:
        connection.close()


def test_a_connection_is_kept(target: Target) -> None:
    connection = http.client.HTTPConnection(target.url.removeprefix("http://"), timeout=5)
    try:
        connection.connect()
        socket = connection.sock
        for _ in range(3):
            connection.request("GET", "/health/live")
            assert connection.getresponse().read() == b'{"status":"ok"}'
            assert connection.sock is socket
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/refund/commit", 405),
        ("POST", "/_ledger", 405),
        ("DELETE", "/invoices/4412", 501),
        ("GET", "/invoices/0", 404),
        ("GET", "/invoices/999999999999999999", 404),
        ("GET", "/invoices?limit=0", 422),
        ("GET", "/invoices?limit=201", 422),
        ("GET", "/invoices?cursor=x", 422),
        ("GET", "/invoices?status=x", 422),
    ],
)
def test_there_is_no_500_for_any_address(
    target: Target, method: str, path: str, status: int
) -> None:
    answer = target.app.request(method, path, json={} if method == "POST" else None)
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_a_body_after_a_get_is_no_second_request(target: Target) -> None:
    smuggled = b"POST /_faults HTTP/1.1\r\n\r\n"
    for _ in range(3):
        answer = target.app.request("GET", "/invoices/4412", content=smuggled)
        assert answer.json()["invoice_id"] == "4412"


def test_invoices_come_in_pages(target: Target) -> None:
    seen, cursor = [], ""
    while cursor is not None:
        query = {"limit": "30", "cursor": cursor} if cursor else {"limit": "30"}
        page = target.agent.get("/invoices", params=query).json()
        seen += [int(invoice["invoice_id"]) for invoice in page["items"]]
        cursor = page["next"]
    assert seen == sorted(set(seen), reverse=True)
    assert {4380, 4412, 4471} <= set(seen)


@pytest.mark.parametrize(
    "body",
    [
        {"amount_cents": 0},
        {"amount_cents": 1, "customer": ""},
        {"amount_cents": 1, "customer": "a\x00b"},
        {"amount_cents": 1, "description": "x" * 201},
        {"amount_cents": 1, "currency": "EUR"},
    ],
)
def test_it_refuses_a_bad_invoice(target: Target, body: object) -> None:
    assert target.agent.post("/invoices", json=body).status_code == 422


def test_nobody_refunds_more_than_was_paid(target: Target) -> None:
    path = f"/invoices/{target.new_invoice(100)}/external_refund"
    assert target.app.post(path, json={"amount_cents": 101}).status_code == 422
    assert target.app.post(path, json={"amount_cents": 100}).json()["status"] == "refunded"
