"""The only module that opens a socket: one call to a target, one answer or the reason for none.

There are no redirects, cookies, proxies, `.netrc`, decompression or retries here to switch off
(T-4). The wall clock is kept by the socket itself, below the reader: every send and every
receive may take only what is left, so a dripping server cannot outlive the deadline.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections.abc import Callable
from functools import cache
from typing import Any, cast

from django.conf import settings
from django.db import connections

from audit.failpoints import failpoint
from plans.addresses import (
    AddressRefused,
    Origin,
    ResolutionFailed,
    SockAddr,
    check_origin,
    resolve_checked,
)
from plans.answers import Broken, read_answer
from plans.exchanges import (
    Answer,
    Call,
    Endpoint,
    Exchange,
    NoAnswer,
    NotSent,
    NotSentReason,
)
from plans.framing import Unsendable, render
from plans.pacing import http_date

__all__ = ["Answer", "Call", "Endpoint", "Exchange", "NoAnswer", "NotSent", "exchange"]


class _Clock:
    """The deadline of one exchange. All times are monotonic seconds."""

    __slots__ = ("ends", "read_timeout", "started")

    def __init__(self, endpoint: Endpoint, deadline: float | None) -> None:
        self.started = time.monotonic()
        self.ends = self.started + endpoint.total_timeout
        if deadline is not None:
            self.ends = min(self.ends, deadline)
        self.read_timeout = endpoint.read_timeout

    def left(self, limit: float) -> float:
        """Seconds the next step may take; raises TimeoutError when there are none."""
        left = self.ends - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return min(limit, left)

    def passed(self) -> bool:
        return time.monotonic() >= self.ends

    def elapsed_ms(self) -> float:
        return (time.monotonic() - self.started) * 1000


class _PlainSocket(socket.socket):
    """A socket that arms its timeout before every step, from the clock it was given."""

    clock: _Clock

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        self.settimeout(self.clock.left(self.clock.read_timeout))
        return super().recv_into(*args, **kwargs)

    def sendall(self, *args: Any, **kwargs: Any) -> None:
        self.settimeout(self.clock.left(self.clock.read_timeout))
        return super().sendall(*args, **kwargs)


class _TLSSocket(ssl.SSLSocket):
    """The same, one layer up; `SSLSocket.sendall` is a loop over `send`."""

    clock: _Clock

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        self.settimeout(self.clock.left(self.clock.read_timeout))
        return super().recv_into(*args, **kwargs)

    def send(self, *args: Any, **kwargs: Any) -> int:
        self.settimeout(self.clock.left(self.clock.read_timeout))
        return super().send(*args, **kwargs)


def exchange(
    endpoint: Endpoint,
    call: Call,
    *,
    deadline: float | None = None,
    on_connected: Callable[[], None] | None = None,
) -> Exchange:
    """Send one request and read one answer; network faults are values, not exceptions (T-4, T-5).

    `deadline` (`time.monotonic()`) can only shorten the total timeout. `on_connected` runs before
    the first byte and stops the send by raising. RuntimeError inside a transaction (T-3).
    """
    let_the_database_go()
    clock = _Clock(endpoint, deadline)
    try:
        origin = check_origin(endpoint.base_url, endpoint.internal)
        request = render(origin, endpoint, call)
        connection = _connect(origin, endpoint, clock)
    except (AddressRefused, ResolutionFailed, Unsendable, OSError) as fault:
        return _not_sent(fault)
    with contextlib.closing(connection):
        (on_connected or _nothing)()
        if clock.passed():
            return NotSent("connect", "no time was left for the first byte")
        failpoint("send.before", call.headers.get("Plan-Id"))
        cap, plan_id = endpoint.answer_cap, call.headers.get("Plan-Id")
        return _conversation(connection, request, clock, cap, plan_id)


def _nothing() -> None:
    """The caller has no last check."""


def let_the_database_go() -> None:
    """A lock held across a call to somebody else's server can stop the whole product (T-3).

    A connection held meanwhile would, too: a few targets that hang would empty the pool.
    """
    if getattr(settings, "GATEWAY_ALLOW_IN_TRANSACTION", False):
        return
    for each in connections.all(initialized_only=True):
        if each.in_atomic_block:
            raise RuntimeError("a call to a target was made inside a database transaction (T-3)")
        each.close()


def _connect(origin: Origin, endpoint: Endpoint, clock: _Clock) -> socket.socket:
    """Resolve, check, connect to a checked address, and speak TLS for the name (SEC-15)."""
    connect_ends = time.monotonic() + endpoint.connect_timeout
    addresses = resolve_checked(
        origin.host,
        origin.port,
        internal=endpoint.internal,
        timeout=clock.left(endpoint.connect_timeout),
    )
    plain = _first_to_answer(addresses, connect_ends, clock)
    if origin.scheme == "http":
        return plain
    try:
        plain.settimeout(clock.left(max(0.001, connect_ends - time.monotonic())))
        secured = _tls().wrap_socket(plain, server_hostname=origin.host, suppress_ragged_eofs=False)
    except (OSError, ValueError) as fault:
        plain.close()
        raise ssl.SSLError(_words(fault)) from fault
    cast(_TLSSocket, secured).clock = clock
    return secured


def _first_to_answer(addresses: list[SockAddr], ends: float, clock: _Clock) -> socket.socket:
    """Try every address in turn; one that hangs may use only its share of the time."""
    last: OSError = ConnectionError("the name has no address")
    for position, address in enumerate(addresses):
        family = socket.AF_INET if len(address) == 2 else socket.AF_INET6
        share = (ends - time.monotonic()) / (len(addresses) - position)
        connection = _PlainSocket(family, socket.SOCK_STREAM)
        try:
            connection.clock = clock
            connection.settimeout(clock.left(max(0.001, share)))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.connect(address)
        except OSError as fault:
            connection.close()
            last = fault
        else:
            return connection
    raise last


@cache
def _tls() -> ssl.SSLContext:
    """System trust (or `SSL_CERT_FILE`), TLS 1.2 and later, sockets that keep our clock."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.sslsocket_class = _TLSSocket
    context.set_alpn_protocols(["http/1.1"])
    return context


def _not_sent(fault: Exception) -> NotSent:
    """Name the step that failed before the first byte (T-5)."""
    reason: NotSentReason = "connect"
    if isinstance(fault, AddressRefused):
        reason = "address-blocked"
    elif isinstance(fault, Unsendable):
        reason = "invalid-request"
    elif isinstance(fault, ResolutionFailed):
        reason = "dns"
    elif isinstance(fault, ssl.SSLError):
        reason = "tls"
    return NotSent(reason, _words(fault))


def _conversation(
    connection: socket.socket, request: bytes, clock: _Clock, cap: int, plan_id: str | None
) -> Answer | NoAnswer:
    """Send, read, and turn every way this can break off into its reason (T-5)."""
    sent = time.monotonic()
    try:
        heard_out = _send(connection, request)
        failpoint("send.after", plan_id)
        with connection.makefile("rb") as stream:
            status, headers, body = read_answer(stream, cap)
    except Broken as broken:
        reason = "reset" if broken.reason == "closed" and not heard_out else broken.reason
        return NoAnswer(reason, broken.detail, clock.elapsed_ms())
    except TimeoutError:
        if clock.passed():
            return NoAnswer("deadline", "the total time was over", clock.elapsed_ms())
        return NoAnswer("timeout", "nothing moved in time", clock.elapsed_ms())
    except ssl.SSLEOFError:
        return NoAnswer("truncated", "TLS was cut without a goodbye", clock.elapsed_ms())
    except OSError as fault:
        return NoAnswer("reset", _words(fault), clock.elapsed_ms())
    skew = skew_of(headers.get("date"), time.time(), time.monotonic() - sent)
    return Answer(status, headers, body, clock.elapsed_ms(), skew)


def _send(connection: socket.socket, request: bytes) -> bool:
    """Send all of it; False if the target hung up meanwhile.

    It may have refused early (413) and closed: its answer is then still there to be read.
    """
    try:
        connection.sendall(request)
    except (BrokenPipeError, ConnectionResetError):
        return False
    return True


def _words(fault: Exception) -> str:
    """A detail for people and logs, from our words and the system's, never from what was sent."""
    if isinstance(fault, TimeoutError):
        return "no connection in time"
    verdict = getattr(fault, "verify_message", None)  # Certificates have a reason of their own.
    return verdict or getattr(fault, "strerror", None) or str(fault) or type(fault).__name__


def skew_of(date: str | None, answered: float, seconds: float) -> float | None:
    """Seconds the target's clock is ahead of ours (C-2); None for no date or no valid one.

    Servers stamp an answer when its request came, when it is done, or in between: 0 anywhere in
    the `seconds` before `answered` (Unix time). The target's work is no lag of its clock.
    """
    then = http_date(date)
    if then is None:
        return None
    # A date names a whole second; its middle is the best guess.
    ahead = then.timestamp() + 0.5 - answered
    return ahead if ahead > 0 else min(0.0, ahead + seconds)
