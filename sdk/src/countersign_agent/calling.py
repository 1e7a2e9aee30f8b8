"""One request to the server, repeated as often as is right, within one deadline."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from countersign_agent.documents import NotStrict, read_object
from countersign_agent.errors import Unanswered, UnexpectedAnswer, refusal
from countersign_agent.exchanges import Answer, Exchange, NotSent, Request
from countersign_agent.flows import Flow, do
from countersign_agent.problems import read_problem, retry_after
from countersign_agent.secret import Secret

LONGEST_WAIT: Final = 25.0
"""Seconds: a server holds a request back for 30 at most; proxies in between give up at 60."""
LARGEST_ANSWER: Final = 2**25
PAUSES: Final = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Seconds between tries, ± 20 %; the last one repeats."""
# Somebody between us and the server, or the server itself, could not take it now.
_GATEWAYS: Final = frozenset({502, 503, 504})
# The server did nothing, and says so.
_NOTHING_DONE: Final = frozenset({"rate-limited", "database-away"})


class ThreadPort(Protocol):
    """The way to the network from threads (`transports.HttpPort`)."""

    def send(self, request: Request) -> Exchange: ...


class LoopPort(Protocol):
    """The way to the network from the event loop (`transports.AsyncHttpPort`)."""

    async def send(self, request: Request) -> Exchange: ...


type Port = ThreadPort | LoopPort
type Pause = Callable[[float], None] | Callable[[float], Awaitable[None]]


@dataclass(slots=True)
class Caller:
    """Address, key and patience. `seconds`: for a whole call, beside what it asks to wait."""

    base_url: str
    api_key: Secret
    port: Port
    pause: Pause
    seconds: float = 60.0
    try_seconds: float = 15.0

    def call(
        self,
        method: str,
        path: str,
        *,
        body: Secret | None = None,
        wait: float | None = None,
        etag: str = "",
        again: bool = False,
    ) -> Flow[Answer]:
        """The answer to a request that succeeded; Refused or Unanswered otherwise.

        At the deadline a refusal that the server gave is told as it is; Unanswered says whether
        a request may have been carried out.

        `again`: to repeat it without an answer does no harm; a GET never does.
        """
        held = min(wait or 0.0, LONGEST_WAIT)
        ends, lost, tries = time.monotonic() + self.seconds + held, False, 0
        while True:
            seconds = min(self.try_seconds + held, ends - time.monotonic())
            request = self._request(method, path, body, held, etag, seconds)
            exchange = yield from do(self.port.send, request)
            pause = _pause(exchange, again or method == "GET", tries)
            lost, tries = lost or _proves_nothing(exchange), tries + 1
            refused = isinstance(exchange, Answer) and not lost
            late = pause is not None and time.monotonic() + pause >= ends
            if pause is None or (late and refused):
                return _accepted(exchange)
            if late:
                raise Unanswered(may_have_arrived=lost)
            yield from do(self.pause, pause)

    def _request(
        self, method: str, path: str, body: Secret | None, held: float, etag: str, seconds: float
    ) -> Request:
        headers = {"Authorization": f"Bearer {self.api_key.reveal()}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if held >= 1:
            headers["Prefer"] = f"wait={int(held)}"
        if etag:
            headers["If-None-Match"] = etag
        text = None if body is None else body.reveal().encode()
        url = f"{self.base_url}/api/v1{path}"
        return Request(method, url, headers, text, seconds, LARGEST_ANSWER)


def _pause(exchange: Exchange, again: bool, tries: int) -> float | None:
    """Seconds until the next try; None: this is what there is."""
    pause = PAUSES[min(tries, len(PAUSES) - 1)] * random.uniform(0.8, 1.2)
    if isinstance(exchange, NotSent):
        return pause
    if not isinstance(exchange, Answer):
        return pause if again else None
    if exchange.status in (429, *_GATEWAYS):
        code = read_problem(exchange).code
        if code in _NOTHING_DONE or (again and exchange.status in _GATEWAYS):
            return max(pause, retry_after(exchange) or 0.0)
    return None


def _proves_nothing(exchange: Exchange) -> bool:
    """Whether the request may have been carried out without our being told."""
    if isinstance(exchange, Answer):
        return exchange.status in _GATEWAYS and not read_problem(exchange).code
    return not isinstance(exchange, NotSent)


def _accepted(exchange: Exchange) -> Answer:
    if not isinstance(exchange, Answer):
        raise Unanswered
    if exchange.status < 300 or exchange.status == 304:
        return exchange
    problem = read_problem(exchange)
    if exchange.status in _GATEWAYS and not problem.code:
        raise Unanswered
    if not problem.code:
        raise UnexpectedAnswer(f"status {exchange.status} without a problem's code")
    raise refusal(problem)


def read_answer(answer: Answer) -> dict[str, Any]:
    """The members of an answer; UnexpectedAnswer when it is no JSON object."""
    try:
        return read_object(answer.body)
    except NotStrict as error:
        raise UnexpectedAnswer(f"status {answer.status}: {error}") from None
