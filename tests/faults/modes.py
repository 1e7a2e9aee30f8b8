"""How the durable target goes wrong: what it does with a commit, and what it lets the caller see.

A mode is the list of faults that a plan's next commits, reads or dry runs meet, one after the
other; after them the target is well. *Before* and *after* say whether the fault strikes before or
after the plan was applied.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from tests.faults.raw_target import CHUNKED, Mode, chunk, dripped, head, whole

CHANGED: Final = {
    "code": "conflict",
    "changed": [{"path": "refunded_cents", "planned": 0, "current": 20000}],
}
REASONS: Final = {200: "OK", 307: "Temporary Redirect", 409: "Conflict", 413: "Too Large"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What the target means to say. `body` None: no body at all."""

    status: int
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def raw(self) -> bytes:
        """The body's bytes."""
        return b"" if self.body is None else json.dumps(self.body).encode()

    def whole(self) -> bytes:
        """Status line, headers and body as they should arrive."""
        named = (f"{name}: {value}" for name, value in self.headers.items())
        return whole(f"{self.status} {REASONS.get(self.status, 'Said')}", self.raw, *named)


type Delivery = Callable[[Answer], Mode]
"""What becomes of an answer on its way."""


def _said(answer: Answer) -> Delivery:
    """Something else arrives, whole, whatever was meant."""
    return lambda _: Mode([answer.whole()])


def _in_bytes(data: bytes, end: Literal["close", "reset", "hang"] = "close") -> Delivery:
    return lambda _: Mode([data], end=end)


def _half(answer: Answer) -> bytes:
    return answer.raw[: len(answer.raw) // 2]


def _cut_chunk(answer: Answer) -> Mode:
    return Mode([CHUNKED + f"{len(answer.raw):x}\r\n".encode() + _half(answer)])


# Every one of these proves nothing about what was done.
DELIVERIES: Final[Mapping[str, Delivery]] = {
    "read then reset": lambda _: Mode(end="reset"),
    "read then close": lambda _: Mode(),
    "hang": lambda _: Mode(end="hang"),
    "hang in the body": lambda a: Mode([head("Content-Length: 99") + _half(a)], end="hang"),
    "drip": lambda a: dripped(a.whole()),
    "short length": lambda a: Mode([head(f"Content-Length: {len(a.raw) + 1}") + a.raw]),
    "cut chunk": _cut_chunk,
    "cut before the last chunk": lambda a: Mode([CHUNKED + chunk(a.raw)]),
    "cut without length": lambda a: Mode([head() + _half(a)]),
    "page of HTML": _in_bytes(whole("200 OK", b"<html>Sign in</html>")),
    "redirect": _said(Answer(307, headers={"Location": "http://169.254.169.254/latest"})),
    "garbage": _in_bytes(b"\x16\x03\x01\x00\xa5 nonsense\r\n\r\n"),
    "no content": _in_bytes(head(status="204 No Content"), "hang"),
    "500": _said(Answer(500, {"code": "internal"})),
    "503": _said(Answer(503, {"code": "away"}, {"Retry-After": "1"})),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One request gone wrong.

    `does`: what happens to the plan first. *late*: it is applied after the caller has given up,
    and `in_progress` until then; *dead*: it is closed as not applied, for good; *late for it*:
    the same, as expired; *replayed*: `answer` is stored under the key and repeated for ever,
    *applied and replayed*: after the plan was applied.
    """

    does: Literal["nothing", "apply", "late", "dead", "expire", "replay", "apply and replay"] = (
        "nothing"
    )
    answer: Answer | None = None
    delivery: str = ""
    # Before a byte of the request is taken from the socket.
    unread: Mode | None = None

    def on_the_wire(self, meant: Answer) -> Mode:
        """`meant`: what a well target would have said."""
        if self.unread is not None:
            return self.unread
        if self.answer is not None:
            return Mode([self.answer.whole()])
        if self.delivery:
            return DELIVERIES[self.delivery](meant)
        return Mode([meant.whole()])


_LOST: Final = Fault("apply", delivery="hang")
_MOVED: Final = Fault("dead", Answer(409, CHANGED))
_GONE: Final = Fault("expire", Answer(410, {"code": "plan-expired"}))
_STORED: Final = Answer(500, {"code": "internal"})

_REFUSALS: Final[dict[str, list[Fault]]] = {
    # The pause lets the caller's connect() finish: a reset inside it is a refused connection.
    "accept then reset": [Fault(unread=Mode([b""], end="reset", reads=False, pause=0.05))],
    "accept then close": [Fault(unread=Mode([b""], reads=False, pause=0.05))],
    "early 413": [Fault(unread=Mode([Answer(413, {}).whole()], reads=False))],
    "409 changed": [_MOVED],
    "409 bare": [Fault("dead", Answer(409))],
    "409 in progress": [Fault(answer=Answer(409, {"code": "in-progress"}))],
    "409 while it is applied": [Fault("late", Answer(409, {"code": "in-progress"}))],
    "410": [_GONE],
    "422": [Fault("dead", Answer(422, {"code": "not-allowed"}))],
    "422 key reused": [Fault(answer=Answer(422, {"code": "idempotency-key-reused"}))],
    "429": [Fault(answer=Answer(429, {"code": "busy"}))],
    "429 with Retry-After": [Fault(answer=Answer(429, {}, {"Retry-After": "1"}))],
    "500 stored, before": [Fault("replay", _STORED)],
    "500 stored, after": [Fault("apply and replay", _STORED)],
    "hang, applied late": [Fault("late", delivery="hang")],
    "lost, then 409 changed": [_LOST, Fault(answer=Answer(409, CHANGED))],
    "lost, then 410": [_LOST, Fault(answer=Answer(410, {"code": "plan-expired"}))],
    "lost, then 404": [_LOST, Fault(answer=Answer(404, {}))],
    "lost, then lost": [_LOST, _LOST],
    # True when it is said; no longer, if it is heard after a later attempt was applied.
    "404, then lost": [Fault(answer=Answer(404, {})), _LOST],
    "413, then lost": [Fault(answer=Answer(413, {})), _LOST],
    "501, then lost": [Fault(answer=Answer(501, {})), _LOST],
    "silent, then 409 changed": [Fault(delivery="hang"), _MOVED],
    "silent, then 410": [Fault(delivery="hang"), _GONE],
}

COMMIT_MODES: Final[Mapping[str, list[Fault]]] = {
    "well": [],
    **{f"{name}, before": [Fault(delivery=name)] for name in DELIVERIES},
    **{f"{name}, after": [Fault("apply", delivery=name)] for name in DELIVERIES},
    **_REFUSALS,
}

# What a read or a dry run meets; none of them may be believed for a word about the plan.
ASKING_MODES: Final[Mapping[str, list[Fault]]] = {
    "well": [],
    **{name: [Fault(delivery=name)] for name in DELIVERIES},
    "accept then reset": _REFUSALS["accept then reset"],
    "429": _REFUSALS["429"],
    "408": [Fault(answer=Answer(408, {}))],
    "nothing in it": [Fault(answer=Answer(200, {}))],
    "of another plan": [Fault(answer=Answer(200, {"plan_id": "plan_other", "status": "applied"}))],
}

MODES: Final[Mapping[str, Mapping[str, list[Fault]]]] = {
    "commit": COMMIT_MODES,
    "read": ASKING_MODES,
    "dry_run": ASKING_MODES,
}
