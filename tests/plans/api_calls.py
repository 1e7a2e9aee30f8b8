"""What an agent sends, and a client that sends it through the whole stack."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from django.test import Client

from audit.models import Event
from plans.models import Evidence, Intent, Plan
from plans.replies import PROBLEM_TYPE

TOKEN = "ptok_0123456789abcdefghij"
LOOKALIKE = "p\u0430id"
BIDI = "\u202e"
INPUTS = '{"amount_cents":48000,"invoice_id":"4412"}'

type Body = dict[str, Any]


def in_seconds(seconds: float) -> str:
    instant = datetime.now(UTC) + timedelta(seconds=seconds)
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")


def action(**members: Any) -> Body:
    change = {"op": "update", "target": "invoice/4412", "field": "refunded_cents"}
    return {**change, "from": 0, "to": 48000, **members}


def dry_run(plan_id: str = "pl_1", **members: Any) -> Body:
    return {
        "plan_id": plan_id,
        "plan_token": TOKEN,
        "expires_at": in_seconds(600),
        "input_fingerprint": "sha256:00ff",
        "actions": [action()],
        **members,
    }


def submission(plan_id: str = "pl_1", /, **members: Any) -> Body:
    return {
        "target": "billing",
        "operation": "refund",
        "task_id": "task-1",
        "inputs": INPUTS,
        "plan": dry_run(plan_id),
        **members,
    }


def without(body: Body, *names: str) -> Body:
    return {name: value for name, value in body.items() if name not in names}


# Building the middleware chain costs more than most requests: all agents share one.
CLIENT = Client(raise_request_exception=False)


class Api:
    """One agent's client. Bodies may be bytes, text or anything JSON can write."""

    def __init__(self, key: str) -> None:
        self.client = CLIENT
        self.headers = {"Authorization": f"Bearer {key}"}

    def get(self, path: str, query: Any = None, **headers: str) -> Any:
        return self.client.get(f"/api/v1{path}", query, headers=self._headers(headers))

    def post(
        self, path: str, body: Any, content_type: str = "application/json", **headers: str
    ) -> Any:
        raw = body if isinstance(body, bytes) else str(body).encode(errors="surrogatepass")
        if not isinstance(body, (bytes, str)):
            raw = json.dumps(body).encode()
        return self.client.generic(
            "POST",
            f"/api/v1{path}",
            raw,
            content_type,
            headers=self._headers(headers),
            # The client leaves it out when the body is empty.
            CONTENT_TYPE=content_type,
        )

    def _headers(self, more: dict[str, str]) -> dict[str, str]:
        return self.headers | {name.replace("_", "-"): value for name, value in more.items()}


def refused(answer: Any, status: int, code: str, pointer: str | None = None) -> None:
    """A problem of this code that points there; nothing stored; no token in it."""
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.content
    assert answer["Content-Type"] == PROBLEM_TYPE
    body = answer.json()
    assert body["status"] == status
    assert body["type"].endswith(f"/problems/{code}")
    assert {"title", "detail", "instance", "next_action", "server_time"} <= body.keys()
    if pointer is not None:
        assert pointer in [error["pointer"] for error in body["errors"]], body
    assert TOKEN not in answer.content.decode()
    for rows in (Plan, Intent, Evidence, Event):
        assert not rows.objects.exists()
