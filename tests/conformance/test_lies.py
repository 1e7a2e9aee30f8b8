"""Whatever a target answers, the checks end with a report: no crash, no secret, no control."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Sequence
from typing import Any

import pytest

from countersign_agent.conformance import NAMES, Allowance, Call, Who, check_target
from countersign_agent.conformance.table import lines
from countersign_agent.exchanges import Answer, Exchange, NoAnswer
from countersign_agent.secret import Secret
from tests.conformance.checking import SLOW, subject
from tests.conformance.counting import AGENT, APP, Ask, Counting

NASTY: tuple[Any, ...] = (
    None, True, 0, -1, 2**70, 1e308, "", " ", "open", "applied", "\x1b[2J", "\u202e", "\ud800",
    "\0", "a" * 70_000, [], {}, [None], [[]], {"path": 1}, {"": {}}, ["x", 1], [{"op": 1}],
    "2026-01-01", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", {"a": [{"b": {}}]},
)  # fmt: skip
SHOUTS = ("\x1b[2J", "\u202eforged", "\ud800", f"Bearer {APP}", "a" * 70_000)
STATUSES = (200, 201, 204, 302, 400, 401, 404, 409, 410, 422, 429, 500, 503, 999)
HEADERS = {
    "date": ("", "yesterday", "Thu, 01 Jan 1970 00:00:00 GMT", "\x1b", "Fri, 99 Foo 99999 1:1:1 X"),
    "content-type": ("", "application/problem+json", "text/\u202ehtml", "a" * 5000),
    "idempotent-replayed": ("true", "", "?1", "no"),
}


class Lying:
    """A wire to the counting target that changes answers at random."""

    seconds = 1.0
    has_agent = True
    secrets: Sequence[Secret] = (Secret(APP), Secret(AGENT))

    def __init__(self, seed: int) -> None:
        self.target, self.random = Counting(), random.Random(seed)
        self.share = self.random.choice((0.05, 0.2, 1.0))
        self.calls = 0

    def send(self, call: Call) -> Exchange:
        headers = {"content-type": "application/json"}
        headers |= {name.lower(): value for name, value in call.headers.items()}
        who = {Who.APP: "app", Who.AGENT: "agent", Who.NOBODY: "nobody"}[call.who]
        reply = self.target.answer(Ask(call.method, call.path, headers, call.body or b"", who))
        told = {name.lower(): value for name, value in reply.headers.items()}
        told["date"] = self.target.date() or ""
        self.calls += 1
        # The first answer is true: else hardly any check would be made.
        if self.calls == 1 or self.random.random() >= self.share:
            return Answer(reply.status, reply.raw(), told)
        return self.changed(reply.status, copy.deepcopy(reply.body), told)

    def changed(self, status: int, body: Any, headers: dict[str, str]) -> Exchange:
        pick = self.random.choice
        match self.random.randrange(6):
            case 0:
                return NoAnswer(pick(("timeout", "malformed", "too-large", "broken-off", "\x1b")))
            case 1:
                status = pick(STATUSES)
                headers["retry-after"] = "0"
                body = {"code": pick(SHOUTS), "status": pick(SHOUTS), "plan_id": pick(SHOUTS)}
            case 2:
                body = pick((*NASTY, b"\xff", b"{", b"[" * 90_000, b'{"a":1,"a":2}'))
            case 3:
                name = pick(list(HEADERS))
                headers[name] = pick(HEADERS[name])
            case _:
                _spoil(body, self.random)
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return Answer(status, raw, headers)


def _spoil(body: Any, chance: random.Random) -> None:
    """Puts something nasty somewhere into the body, or takes something out of it."""
    if isinstance(body, list) and body:
        place = chance.randrange(len(body))
        if isinstance(body[place], dict | list) and chance.random() < 0.7:
            return _spoil(body[place], chance)
        body[place] = chance.choice(NASTY)
    elif isinstance(body, dict) and body:
        name = chance.choice(list(body))
        if isinstance(body[name], dict | list) and chance.random() < 0.7:
            return _spoil(body[name], chance)
        if chance.random() < 0.3:
            del body[name]
        else:
            body[name] = chance.choice(NASTY)
    return None


@pytest.mark.parametrize("block", range(4))
def test_no_answer_crashes_a_check_or_shows_itself_raw(block: int) -> None:
    for seed in range(block * 30, block * 30 + 30):
        wire = Lying(seed)
        allowance = Allowance(commits=True, run_seconds=20)
        report = check_target("counting", subject(), wire, allowance, {*NAMES} - SLOW)
        text = "\n".join(lines(report, 88)) + json.dumps(report.as_json(), ensure_ascii=False)
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e\ud800-\udfff]", text), seed
        assert not [one for one in wire.secrets if one.is_in(text)], seed
        assert not [plan for plan in wire.target.plans.values() if plan.token in text], seed
        assert all(len(words) < 500 for one in report.results for words in one.wrong), seed
