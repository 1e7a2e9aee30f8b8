"""Billing as a whole: the operation, the other addresses, and the faults between them."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from countersign_target import (
    APP,
    EITHER,
    ONLY_APP,
    Answer,
    Credentials,
    Operation,
    Plan,
    Request,
    Route,
    Target,
    asked_lifespan,
    not_allowed,
)
from countersign_target.postgresql import PostgresStore

from . import invoices, refunds
from .database import Connection, Pool, fill
from .faults import Faults


class Billing:
    """What is served: the kit's target, spoiled as ordered."""

    name = "billing"

    def __init__(self, pool: Pool, credentials: Credentials, plan_seconds: int) -> None:
        self.faults = Faults()
        self.store = PostgresStore(pool)
        # A caller may ask for a shorter plan.
        lifespan = asked_lifespan(timedelta(seconds=plan_seconds), longest=timedelta(seconds=600))
        refund = Operation("refund", refunds.plan, self._apply, lifespan)
        self.target = Target(self.name, self.store, credentials, [refund], routes=self._rest())
        self.max_body = self.target.max_body
        with pool.connection() as connection:
            fill(connection)

    def answer(self, request: Request) -> Answer:
        """The target's answer, or what was ordered in its place; NoAnswer is raised."""
        known = self.target.identity.principal(request.header("Authorization"))
        if (request.method, request.path, known) != ("POST", "/refund/commit", APP):
            return self.target.answer(request)
        fault = self.faults.take()
        self.faults.slow_down(fault)
        if fault and not fault.mode.applies:
            return fault.end() or self.target.answer(request)
        answer = self.target.answer(request)
        # Even a refusal is lost with the answer: the caller must not learn anything.
        return (fault and fault.end()) or answer

    def _apply(self, plan: Plan) -> dict[str, Any]:
        self.faults.linger()
        return refunds.apply(plan)

    def _rest(self) -> list[Route]:
        def stored(handle: Callable[[Connection, Request], Any]) -> Callable[[Request], Answer]:
            def answer(request: Request) -> Answer:
                with self.store.transaction() as transaction:
                    return Answer.of(handle(transaction.connection, request))

            return answer

        invoice = "/invoices/{number}"
        return [
            Route("GET", "/invoices", EITHER, stored(lambda c, r: invoices.listed(c, r.query))),
            Route("POST", "/invoices", EITHER, self._new_invoice),
            Route("GET", invoice, EITHER, stored(_invoice)),
            Route("POST", f"{invoice}/external_refund", ONLY_APP, stored(_external_refund)),
            Route("POST", "/_faults", ONLY_APP, lambda r: Answer.of(self.faults.arm(r.body))),
            Route("GET", "/_ledger", ONLY_APP, stored(_ledger)),
        ]

    def _new_invoice(self, request: Request) -> Answer:
        with self.store.transaction() as transaction:
            invoice = invoices.create(transaction.connection, request.body)
        return Answer.of(invoice, 201, Location=f"/invoices/{invoice['invoice_id']}")


def _invoice(connection: Connection, request: Request) -> dict[str, Any]:
    return invoices.shown(invoices.find(connection, request.parts["number"]))


def _external_refund(connection: Connection, request: Request) -> dict[str, Any]:
    number, refund_id = request.parts["number"], refunds.new_refund_id()
    return invoices.refund_externally(connection, number, refund_id, request.body)


def _ledger(connection: Connection, request: Request) -> dict[str, Any]:
    if request.query:
        raise not_allowed(("", "the ledger takes no query"))
    return invoices.ledger(connection)
