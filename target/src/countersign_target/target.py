"""The target: its operations, its store, its credentials, and every answer it gives."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from countersign_target.committing import commit
from countersign_target.credentials import ANYONE, EITHER, ONLY_APP, Identity, admit
from countersign_target.declaring import configuration
from countersign_target.exchanges import JSON, Answer, Request
from countersign_target.operations import Operation
from countersign_target.planning import described, dry_run, find
from countersign_target.plans import Status
from countersign_target.problems import Problem
from countersign_target.routing import Route, resolve
from countersign_target.sending import commit_outside
from countersign_target.sending import resolve as resolve_sending
from countersign_target.stores import Store, StoreAway

LOG: Final = logging.getLogger("countersign_target")
FORGET_EVERY: Final = 60.0
SHORTEST_RETENTION: Final = 3_600
DAY: Final = 86_400


class Target:
    """A system that owns data, as Countersign sees it: dry run, commit, read-back by plan ID.

    `store.prepare()` is called here. `identity`: `Credentials`, or anything with `principal()`.
    `key_retention_seconds`: how long the same key brings the same answer, an hour or more (a plan
    that is applied is never applied again, however old its key). `plan_retention_seconds`: how long
    plans that came to nothing can be read after their expiry, a day or more; None is for ever, as
    applied ones are. `max_body` in bytes. `routes`: what else is served under the same
    credentials, with the same refusals.
    """

    def __init__(
        self,
        name: str,
        store: Store,
        identity: Identity,
        operations: Sequence[Operation],
        *,
        key_retention_seconds: int = 86_400,
        plan_retention_seconds: int | None = None,
        max_body: int = 65_536,
        routes: Sequence[Route] = (),
    ) -> None:
        if len({operation.name for operation in operations}) != len(operations):
            raise ValueError("two operations of one name")
        if key_retention_seconds < SHORTEST_RETENTION:
            raise ValueError(f"keys are kept for {SHORTEST_RETENTION} s or more")
        if plan_retention_seconds is not None and plan_retention_seconds < DAY:
            raise ValueError("plans are kept for a day or more")
        self.name = name
        self.store = store
        self.identity = identity
        self.operations = {operation.name: operation for operation in operations}
        self.key_retention_seconds = key_retention_seconds
        self.plan_retention_seconds = plan_retention_seconds
        self.max_body = max_body
        own = (route for operation in operations for route in self._routes(operation))
        self.routes: list[Route] = [
            *own,
            Route("GET", "/plans/{plan_id}", EITHER, self._read_back),
            Route("GET", "/health/live", ANYONE, lambda request: Answer.of({"status": "ok"})),
            *routes,
        ]
        self._forgotten_at = float("-inf")
        self._forgetting = threading.Lock()
        store.prepare()

    def answer(self, request: Request) -> Answer:
        """The answer to any request; never raises. Blocks: an event loop calls it in a thread."""
        try:
            return self.respond(request)
        except Problem as problem:
            return Answer.refusing(problem, self.name)
        except StoreAway:
            # The outcome of a COMMIT that lost its connection is open: a 5xx says just that.
            away = Problem(503, "store-away", "The database does not answer.")
            return Answer.refusing(away.with_headers(Retry_After="1"), self.name)
        except Exception:
            # The traceback goes to the log; no body and no header is in it.
            LOG.exception("%s %s", request.method, request.path)
            return Answer.refusing(Problem(500, "internal-error", "This is our fault."), self.name)

    def respond(self, request: Request) -> Answer:
        """As `answer`, with refusals and faults raised: for who answers in another shape."""
        route, request = resolve(self.routes, request)
        admit(self.identity, request.header("Authorization"), route.allowed)
        if request.method != "GET":
            self._check_body(request)
        return route.handle(request)

    def configuration(self, base_url: str, *, internal: bool = False) -> str:
        """TOML that tells Countersign of this target: `manage.py apply_config`.

        `internal`: its address is a loopback or a private one.
        """
        kept = self.key_retention_seconds
        return configuration(self.name, base_url, self.operations, kept, internal=internal)

    def _routes(self, operation: Operation) -> list[Route]:
        outside = operation.outside

        def plan(request: Request) -> Answer:
            self._forget()
            return dry_run(self.store, operation, request)

        def carry_out(request: Request) -> Answer:
            if outside is not None:
                return commit_outside(self.store, operation, outside, request, self.name)
            return commit(self.store, operation, request, self.name)

        return [
            Route("POST", f"/{operation.name}/dry_run", EITHER, plan),
            # Review cannot be bypassed: the agent's credential does not commit.
            Route("POST", f"/{operation.name}/commit", ONLY_APP, carry_out),
        ]

    def _read_back(self, request: Request) -> Answer:
        plan_id = request.parts["plan_id"]
        plan, word = find(self.store, plan_id)
        operation = self.operations.get(plan.operation)
        if plan.status is Status.SENDING and word == "open" and operation and operation.outside:
            resolve_sending(self.store, operation.outside, plan, self.name)
            plan, word = find(self.store, plan_id)
        return described(plan, word)

    def _check_body(self, request: Request) -> None:
        if len(request.body) > self.max_body:
            raise Problem(413, "too-large", f"A body is at most {self.max_body} bytes.")
        kind = (request.header("Content-Type") or "").partition(";")[0].strip().lower()
        if kind != JSON:
            raise Problem(415, "unsupported-media-type", "Send application/json.")
        if request.header("Content-Encoding"):
            raise Problem(415, "unsupported-media-type", "Send the body as it is.")

    def _forget(self) -> None:
        """Now and then, what was promised no longer."""
        now = time.monotonic()
        with self._forgetting:
            if now - self._forgotten_at < FORGET_EVERY:
                return
            self._forgotten_at = now
        with self.store.transaction() as transaction:
            clock = transaction.now()
            transaction.forget_keys(clock - timedelta(seconds=self.key_retention_seconds))
            if self.plan_retention_seconds is not None:
                kept = timedelta(seconds=self.plan_retention_seconds)
                transaction.forget_plans(clock - kept)
