"""An agent and a reviewer on raw keep-alive connections: as little client as possible."""

from __future__ import annotations

import copy
import http.client
import json
import re
import time
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from bench.target import plan_of
from bench.waiters import Place

WINDOW_SECONDS: Final = 3600


class Refused(Exception):
    """The product answered something else than the bench expects."""


def new_plan_id(number: int) -> str:
    return f"plan_{number}_{(int(time.time()) + WINDOW_SECONDS) * 1000}"


@dataclass(frozen=True, slots=True)
class Seen:
    """A plan's representation and the ETag to wait with."""

    members: dict[str, Any]
    etag: str


class BenchAgent:
    """Submits plans and waits for what becomes of them."""

    def __init__(self, port: int, key: str) -> None:
        self.http = http.client.HTTPConnection("127.0.0.1", port)
        self.headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def call(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes, str]:
        """Status, body and ETag."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.http.request(method, path, body, self.headers | named)
        answer = self.http.getresponse()
        return answer.status, answer.read(), answer.headers.get("ETag", "")

    def submit(self, plan_id: str) -> Seen:
        """Hand the plan over."""
        number = plan_id.split("_")[1]
        body = {
            "target": "sink",
            "operation": "refund",
            "task_id": f"bench-{number}",
            "inputs": f'{{"amount_cents":48000,"invoice_id":"{number}"}}',
            "plan": plan_of(plan_id) | {"plan_token": f"token-of-{plan_id}"},
            "reason": "The bench asks for it.",
        }
        status, text, etag = self.call("POST", "/api/v1/plans", json.dumps(body).encode())
        if status != 201:
            raise Refused(f"submission: {status} {text[:300]!r}")
        return Seen(json.loads(text), etag)

    def place(self, path: str) -> Place:
        """From where to wait for news of a plan (its ETag), or of all plans (the feed's end)."""
        status, text, etag = self.call("GET", path)
        if status != 200:
            raise Refused(f"{path}: {status} {text[:300]!r}")
        if etag:
            return Place(path, f"If-None-Match: {etag}\r\n")
        return Place(f"{path}?after={json.loads(text)['next']}")

    def wait_until(self, plan_id: str, wanted: str, seen: Seen | None = None) -> Seen:
        """Long-poll until the plan has this status, which the last answer may show already."""
        for _ in range(20):
            if seen is not None and seen.members["status"] == wanted:
                return seen
            status, text, etag = self.call(
                "GET",
                f"/api/v1/plans/sink/{plan_id}",
                None,
                Prefer="wait=25",
                **({"If_None_Match": seen.etag} if seen else {}),
            )
            seen = Seen(json.loads(text), etag) if status == 200 else seen
        raise Refused(f"{plan_id} did not become {wanted}")


class BenchReviewer:
    """Ada: signs in by the form, decides by the form's POST."""

    def __init__(self, port: int, password: str) -> None:
        self.http = http.client.HTTPConnection("127.0.0.1", port)
        self.cookies: dict[str, str] = {}
        page = self._call("GET", "/accounts/login/")[1]
        self.token = self._csrf(page)
        status, _ = self._post("/accounts/login/", {"login": "ada", "password": password})
        if status != 302:
            raise Refused(f"sign-in: {status}")
        self.token = self.cookies.get("csrftoken", self.token)

    def beside(self) -> BenchReviewer:
        """The same session over a connection of its own: eight sign-ins at once are refused."""
        twin = copy.copy(self)
        twin.http = http.client.HTTPConnection(self.http.host, self.http.port)
        return twin

    def approve(self, plan_id: str, digest: str) -> int:
        """The instant of the click, `time.monotonic_ns()`."""
        fields = {"verdict": "approve", "note": "", "shown_digest": digest}
        clicked = time.monotonic_ns()
        status, text = self._post(f"/plans/sink/{plan_id}/decision/", fields)
        if status != 303:
            raise Refused(f"decision: {status} {text[:300]!r}")
        return clicked

    def opens(self, path: str) -> None:
        """Read a page to its end."""
        status, text = self._call("GET", path)
        if status != 200:
            raise Refused(f"{path}: {status} {text[:300]!r}")

    def _post(self, path: str, fields: dict[str, str]) -> tuple[int, bytes]:
        body = urlencode(fields | {"csrfmiddlewaretoken": self.token}).encode()
        return self._call("POST", path, body)

    def _call(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
        headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        self.http.request(method, path, body, headers)
        answer = self.http.getresponse()
        for cookie in answer.headers.get_all("Set-Cookie") or []:
            name, _, value = cookie.split(";")[0].partition("=")
            self.cookies[name] = value
        return answer.status, answer.read()

    def _csrf(self, page: bytes) -> str:
        found = re.search(rb'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        if found is None:
            raise Refused("the sign-in page has no form")
        return found[1].decode()
