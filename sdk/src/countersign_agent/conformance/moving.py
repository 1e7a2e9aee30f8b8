"""How the world is moved for the checks that need it: a request, or a command of one's own.

--move-state 'POST /invoices/4412/external_refund {"amount_cents": 1}'
--move-state './move.sh 4412'
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable
from typing import Final
from urllib.parse import urljoin, urlsplit

from countersign_agent.conformance.subject import MoveFailed
from countersign_agent.conformance.wire import Call, HttpWire, Who
from countersign_agent.exchanges import Answer

_REQUEST: Final = re.compile(r"(GET|POST|PUT|PATCH|DELETE)\s+(\S+)(?:\s+(.+))?", re.DOTALL)


def read_mover(text: str, wire: HttpWire) -> Callable[[], None]:
    """The hook in an option: `METHOD URL BODY`, else a command. ValueError says what is wrong."""
    request = _REQUEST.fullmatch(text.strip())
    if request is not None:
        return _by_request(request[1], request[2], request[3], wire)
    words = shlex.split(text)
    if not words:
        raise ValueError("it is empty")
    return _by_command(words, wire.seconds)


def _by_request(method: str, where: str, body: str | None, wire: HttpWire) -> Callable[[], None]:
    url = wire.base_url + where if where.startswith("/") else urljoin(wire.base_url + "/", where)
    # The target's credential goes to the target and to nobody else.
    who = Who.APP if _origin(url) == _origin(wire.base_url) else Who.NOBODY
    call = Call(method, "", None if body is None else body.encode(), who=who)

    def move() -> None:
        exchange = wire.send_to(url, call)
        if not isinstance(exchange, Answer):
            raise MoveFailed("the request got no answer")
        if not 200 <= exchange.status < 300:
            raise MoveFailed(f"the request was answered {exchange.status}")

    return move


def _by_command(words: list[str], seconds: float) -> Callable[[], None]:
    def move() -> None:
        try:
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=max(seconds, 60.0),
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise MoveFailed("the command did not end") from None
        except OSError as fault:
            raise MoveFailed(f"the command did not start: {fault.strerror}") from None
        if done.returncode:
            raise MoveFailed(f"the command ended with {done.returncode}")

    return move


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme.lower(), parts.netloc.lower()
