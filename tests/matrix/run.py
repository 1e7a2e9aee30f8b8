"""One run of the matrix: every row's plan at once, in two waves; then what is left is judged."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import httpx
from django.db import connection
from django.test import Client

from approvals.decisions import Ballot, decide
from plans import tasks
from plans.models import Plan, Replan
from plans.status import Status
from tests.faults.target_process import TargetProcess
from tests.matrix.arming import Orders
from tests.matrix.combinations import ACTS, LATER_LOST, SEALS, Row
from tests.matrix.crew import Crew
from tests.matrix.judging import findings, stories
from tests.matrix.staging import Staged, World, stage

AT_WORK: Final = (Status.APPROVED, Status.COMMITTING, Status.UNKNOWN, Status.VERIFYING)
# Invariant 4.
LIVENESS_SECONDS: Final = 180.0
REFUSES_SECONDS: Final = 2.0
MOST_ROUNDS: Final = 3
CSRF: Final = "t" * 32
ORDERS: Final = {"raise": "raise", "kill": "kill", "stall": "stall 3.5"}
IN_HAND: Final = ("answer.read", "result.before")


@dataclass(slots=True)
class Result:
    """What the judge and the table of ends found; empty `findings`: everything held."""

    findings: list[str] = field(default_factory=list)
    rows: int = 0
    # The rows, and once more those whose step was not met.
    played: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    attempts: int = 0
    deaths: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def line(self) -> str:
        """What happened, for the page of figures."""
        ends = ", ".join(f"{status} {count}" for status, count in sorted(self.statuses.items()))
        killed = ", ".join(f"{name} {count}" for name, count in sorted(self.deaths.items()))
        return (
            f"{self.rows} rows ({self.played} plans), {self.attempts} attempts,"
            f" {self.seconds:.0f} s; ends: {ends}; killed: {killed};"
            f" findings: {len(self.findings)}"
        )


@dataclass(slots=True)
class Matrix:
    """What a run works with. `told`: plans whose approval was acknowledged to Ada."""

    world: World
    target: TargetProcess
    crew: Crew
    orders: Orders
    told: set[str] = field(default_factory=set)

    def play(self, rows: Sequence[Row]) -> Result:
        """Break everything that the rows say, wait until it is quiet, and judge.

        A row whose step was not met, because what it depends on died before, is played again.
        """
        began = time.monotonic()
        eventually(self.crew.web_is_up, 60)
        threading.Timer(REFUSES_SECONDS, self.target.open_refusing).start()
        staged: list[Staged] = []
        left = list(rows)
        for _ in range(MOST_ROUNDS):
            now = stage(self.world, self.target, left)
            self._break(now, () if staged else SEALS)
            staged += now
            left = [each.row for each in self._unmet(now)]
            if not left:
                break
        result = self._judged(staged, left)
        result.rows, result.seconds = len(rows), time.monotonic() - began
        return result

    def _break(self, staged: Sequence[Staged], seals: Iterable[tuple[str, str]]) -> None:
        """In two waves: what dies takes its neighbours' misfortune with it."""
        for wave in (("raise", "stall"), ("kill",)):
            now = [each for each in staged if each.row.act in wave]
            for each in now:
                self.orders.arm(each.row.step, each.key, self._order(each))
            for step, act in (each for each in seals if each[1] in wave):
                self.orders.arm(step, None, ORDERS[act], turn=ACTS.index(act))
            self._approve(now)
            eventually(partial(self._are_through, now), LIVENESS_SECONDS)
        eventually(lambda: not at_work(), LIVENESS_SECONDS)

    def _order(self, staged: Staged) -> str:
        """With an answer in hand that is true no longer once a later attempt is applied: till then.

        Any other stall outlasts the lease and the sweep that finds it lapsed.
        """
        row = staged.row
        if row.act == "stall" and row.step in IN_HAND and row.mode in LATER_LOST:
            return f"stall until {self.target.mark_of(staged.plan.plan_id)}"
        return ORDERS[row.act]

    def _are_through(self, staged: Sequence[Staged]) -> bool:
        return not self._unmet(staged) or not at_work()

    def _approve(self, staged: Iterable[Staged]) -> None:
        """As the web server does; in its own process where that is what breaks."""
        ways: dict[str, list[Staged]] = defaultdict(list)
        for each in staged:
            ways["web" if each.row.family == "decide" else "here"].append(each)
        cookies, url = _signed_in(self.world), self.crew.url
        with (
            httpx.Client(base_url=url, cookies=cookies, trust_env=False, timeout=20) as browser,
            ThreadPoolExecutor(22) as pool,
        ):
            done = [pool.submit(self._click, browser, each) for each in ways["web"]]
            done += [pool.submit(self._decide, ways["here"][n::2]) for n in range(2)]
            for call in done:
                call.result()

    def _decide(self, staged: Iterable[Staged]) -> None:
        with closing(connection):
            for each in staged:
                ballot = Ballot("approve", "", each.plan.digest)
                tasks.ring_for(decide(self.world.ada, each.plan.pk, ballot))
                self.told.add(each.plan.plan_id)

    def _click(self, browser: httpx.Client, staged: Staged) -> None:
        """Press Approve until it is taken, as a person does who sees an error page."""
        plan = staged.plan
        path = f"/plans/{plan.target.name}/{plan.plan_id}/decision/"
        form = {"verdict": "approve", "note": "", "shown_digest": plan.digest}
        until = time.monotonic() + LIVENESS_SECONDS
        while time.monotonic() < until:
            with suppress(httpx.HTTPError):
                answer = browser.post(path, data=form | {"csrfmiddlewaretoken": CSRF})
                if answer.status_code == httpx.codes.SEE_OTHER:
                    self.told.add(plan.plan_id)
                    return
            time.sleep(0.2)

    def _unmet(self, staged: Iterable[Staged]) -> list[Staged]:
        left = set(self.orders.left())
        return [e for e in staged if f"{e.row.step}@{e.key}.0" in left]

    def _judged(self, staged: Sequence[Staged], unmet: Sequence[Row]) -> Result:
        told_of = stories()
        found = findings(staged, self.target, self.told)
        if at_work():
            found.append(f"it did not become quiet: {self.crew.said()}")
        unsealed = [name for name in self.orders.left() if name.startswith("seal.")]
        return Result(
            findings=[*found, *(f"never met: {each}" for each in (*unmet, *unsealed))],
            played=len(staged),
            statuses=Counter(story.status for story in told_of),
            attempts=sum(len(story.outcomes) for story in told_of),
            deaths=Counter(self.crew.deaths),
        )


def at_work() -> bool:
    """Whether a machine still has something to do for a plan that people decided on."""
    return (
        Plan.objects.filter(status__in=AT_WORK).exists()
        or Replan.objects.filter(status__in=[Replan.Status.QUEUED, Replan.Status.LEASED]).exists()
    )


def eventually(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether it comes true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def _signed_in(world: World) -> dict[str, str]:
    client = Client()
    client.force_login(world.ada)
    return {name: morsel.value for name, morsel in client.cookies.items()} | {"csrftoken": CSRF}
