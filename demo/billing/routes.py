"""What may be asked, by whom, and who answers."""

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from psycopg import OperationalError
from psycopg_pool import PoolTimeout

from . import invoices, plans
from .commits import Answer, commit
from .credentials import ANYONE, EITHER, ONLY_APP, Credentials, Principals
from .database import Pool
from .faults import Faults
from .problems import Problem, not_allowed

WINDOW_HEADER = "Plan-Seconds"
MIN_WINDOW, MAX_WINDOW = 5, 600


@dataclass(frozen=True)
class Request:
    """An HTTP request as the routes need it; `part` is the variable part of the path."""

    method: str
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: bytes
    part: str = ""


@dataclass
class Billing:
    """The running target: its database, its credentials and its armed faults."""

    pool: Pool
    credentials: Credentials
    plan_seconds: int = MAX_WINDOW
    faults: Faults = field(default_factory=Faults)
    stopping: threading.Event = field(default_factory=threading.Event)

    def answer(self, request: Request) -> Answer:
        """Route, authorise and carry out `request`; problems are raised."""
        route, part = _resolve(request)
        self.credentials.check(request.headers.get("Authorization"), route.allowed)
        try:
            return route.handle(self, Request(**{**vars(request), "part": part}))
        except (OperationalError, PoolTimeout):
            # Whatever broke this connection broke its neighbours too: replace them now.
            self.pool.check()
            # The outcome of a COMMIT that lost its connection is open: a 5xx says just that.
            gone = Problem(503, "database-away", "The database does not answer.")
            raise gone.with_headers(Retry_After="1") from None


Handler = Callable[[Billing, Request], Answer]


@dataclass(frozen=True)
class Route:
    """One row of the table: who may call what."""

    method: str
    path: re.Pattern[str]
    allowed: Principals
    handle: Handler


def _resolve(request: Request) -> tuple[Route, str]:
    there = [(route, found) for route in ROUTES if (found := route.path.fullmatch(request.path))]
    for route, found in there:
        if route.method == request.method:
            return route, "".join(found.groups())
    if not there:
        raise Problem(404, "not-found", "There is nothing at this address.")
    allowed = ", ".join(sorted({route.method for route, _ in there}))
    raise Problem(405, "method-not-allowed", f"Use {allowed}.").with_headers(Allow=allowed)


def _health(billing: Billing, request: Request) -> Answer:
    return Answer.of({"status": "ok"})


def _dry_run(billing: Billing, request: Request) -> Answer:
    window = _window(request.headers.get(WINDOW_HEADER), billing.plan_seconds)
    with billing.pool.connection() as connection:
        return Answer.of(plans.dry_run(connection, request.body, window))


def _window(header: str | None, usual: int) -> timedelta:
    """The plan's lifespan; a caller may ask for another (the demo target's own extension)."""
    if header is None:
        return timedelta(seconds=usual)
    if re.fullmatch(r"[0-9]{1,4}", header, re.ASCII) and MIN_WINDOW <= int(header) <= MAX_WINDOW:
        return timedelta(seconds=int(header))
    raise Problem(400, "bad-header", f"{WINDOW_HEADER} must be {MIN_WINDOW} to {MAX_WINDOW}.")


def _commit(billing: Billing, request: Request) -> Answer:
    fault = billing.faults.take()
    if fault and not fault.mode.applies:
        fault.end()

    def linger() -> None:
        if fault and fault.mode.ending == "slow":
            billing.stopping.wait(fault.seconds)

    try:
        with billing.pool.connection() as connection:
            answer = commit(
                connection,
                request.headers.get("Idempotency-Key"),
                request.body,
                linger,
            )
    finally:
        # Even a refusal is lost with the answer: the caller must not learn anything.
        if fault:
            fault.end()
    return answer


def _plan(billing: Billing, request: Request) -> Answer:
    with billing.pool.connection() as connection:
        return Answer.of(plans.read_back(connection, request.part))


def _invoices(billing: Billing, request: Request) -> Answer:
    with billing.pool.connection() as connection:
        return Answer.of(invoices.listed(connection, request.query))


def _new_invoice(billing: Billing, request: Request) -> Answer:
    with billing.pool.connection() as connection:
        invoice = invoices.create(connection, request.body)
    return Answer.of(invoice, 201, Location=f"/invoices/{invoice['invoice_id']}")


def _invoice(billing: Billing, request: Request) -> Answer:
    with billing.pool.connection() as connection:
        return Answer.of(invoices.shown(invoices.find(connection, request.part)))


def _external_refund(billing: Billing, request: Request) -> Answer:
    with billing.pool.connection() as connection:
        return Answer.of(invoices.refund_externally(connection, request.part, request.body))


def _arm(billing: Billing, request: Request) -> Answer:
    return Answer.of(billing.faults.arm(request.body))


def _ledger(billing: Billing, request: Request) -> Answer:
    if request.query:
        raise not_allowed(("", "the ledger takes no query"))
    with billing.pool.connection() as connection:
        return Answer.of(invoices.ledger(connection))


ROUTES = [
    Route("GET", re.compile("/health/live"), ANYONE, _health),
    Route("POST", re.compile("/refund/dry_run"), EITHER, _dry_run),
    # Review cannot be bypassed: the agent's credential does not commit.
    Route("POST", re.compile("/refund/commit"), ONLY_APP, _commit),
    Route("GET", re.compile("/plans/([^/]+)"), EITHER, _plan),
    Route("GET", re.compile("/invoices"), EITHER, _invoices),
    Route("POST", re.compile("/invoices"), EITHER, _new_invoice),
    Route("GET", re.compile("/invoices/([^/]+)"), EITHER, _invoice),
    Route("POST", re.compile("/invoices/([^/]+)/external_refund"), ONLY_APP, _external_refund),
    Route("POST", re.compile("/_faults"), ONLY_APP, _arm),
    Route("GET", re.compile("/_ledger"), ONLY_APP, _ledger),
]
