"""Through Countersign: a real server, a real target, people at their browsers, one ledger."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from countersign_agent import (
    AsyncClient,
    AsyncGuard,
    Client,
    Guard,
    JsonFileStore,
    OutcomeUnknown,
    PlanSubmitted,
    Refused,
    Store,
    Unanswered,
    as_json,
)
from countersign_agent.errors import NotFound, RequestFault, TaskEnded, Unauthenticated
from countersign_agent.instants import now
from demo.credentials import AGENT, TARGET
from tests.journeys.people import Billing, Person
from tests.journeys.product import ROOT, Product, eventually
from tests.sdk.losing import Losing
from tests.sdk.overhearing import AsyncOverheard, Blocking, Ear, Overheard
from tests.sdk.programs import QUICK

HERE = Path(__file__).parent
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def product() -> Iterator[Product]:
    product = Product()
    try:
        product.start()
        product.configure(product.credentials.billing_url)
        add_desk(product)
        yield product
        assert product.stop() == 0
    finally:
        product.wipe()


# The same billing, where re-plans are the agent's.
DESK = """
[[targets]]
name = "desk"
base_url = "{url}"
internal = true
credential = "env:BILLING_TOKEN"
plan_path = "/plans/{{plan_id}}"
min_window_seconds = 3
total_timeout_seconds = 6
reviewers = ["reviewers"]

[[targets.operations]]
name = "refund"
title = "Refund on {{object}}"
dry_run_path = "/refund/dry_run"
commit_path = "/refund/commit"
replan = "agent"
risk = "low"
"""


def add_desk(product: Product) -> None:
    file = product.home / "desk.toml"
    file.write_text(DESK.format(url=product.credentials.billing_url))
    token = product.credentials.raw["targets"][TARGET]["token"]
    product.manage("apply_config", str(file), BILLING_TOKEN=token)


@pytest.fixture(scope="module")
def ada(product: Product) -> Iterator[Person]:
    ada = Person(product.credentials, "ada")
    yield ada
    ada.browser.close()


@pytest.fixture(scope="module")
def billing(product: Product) -> Iterator[Billing]:
    billing = Billing(product.credentials)
    yield billing
    billing.client.close()


class Reviewed:
    """A program whose plans people decide about; each test is a task of its own."""

    def __init__(self, kind: str, ear: Ear, product: Product, runner: asyncio.Runner) -> None:
        self.kind, self.ear, self.product, self.runner = kind, ear, product, runner
        self.task_id = f"task-{next(_numbers)}"
        self.later = timedelta(0)
        self.closing: list[Any] = []
        raw = product.credentials.raw
        self.key = raw["agents"][AGENT]["api_key"]
        self.agent_token = raw["targets"][TARGET]["agent_token"]

    def client(self, base_url: str | None = None, **options: Any) -> Any:
        where = (base_url or self.product.credentials.base_url, self.key)
        return self._closed(
            Client(*where, **options) if self.kind == "threads" else AsyncClient(*where, **options)
        )

    def guard(self, store: Store | None = None, *, targets: bool = True, **client: Any) -> Any:
        known = {TARGET: self.target(), "desk": self.target()} if targets else {}
        options: Any = {"patience": QUICK, "clock": lambda: now() + self.later}
        if self.kind == "threads":
            return Guard(self.client(**client), known, store, **options)
        inner = self.client(**client).inner
        return Blocking(AsyncGuard(inner, known, store, **options), self.runner)

    def target(self) -> Any:
        where = (self.product.credentials.billing_url, self.agent_token)
        target: Any = (Overheard if self.kind == "threads" else AsyncOverheard)(*where)
        target.ear = self.ear
        self._closed(target)
        return target

    def _closed(self, made: Any) -> Any:
        if self.kind != "threads":
            made = Blocking(made, self.runner)
        self.closing.append(made.close)
        return made


@pytest.fixture
def program(request: pytest.FixtureRequest, ear: Ear, product: Product) -> Iterator[Reviewed]:
    """On the event loop; the flows are the same in threads, where `in_both` tries the shells."""
    with asyncio.Runner() as runner:
        program = Reviewed(getattr(request, "param", "event loop"), ear, product, runner)
        yield program
        for close in program.closing:
            close()


in_both = pytest.mark.parametrize("program", ["threads", "event loop"], indirect=True)


def wish(invoice: str, cents: int = 48_000) -> dict[str, Any]:
    return {"invoice_id": invoice, "amount_cents": cents}


def proposed(task: Any, inputs: dict[str, Any], **words: str) -> Any:
    """Handed over, and before people."""
    outcome = task.propose("billing", "refund", inputs, **words)
    return arrived(task, outcome)


def arrived(task: Any, outcome: Any) -> Any:
    for _ in range(60):
        if outcome.status not in ("verifying", "submitting", "planning"):
            return outcome
        outcome = task.wait(outcome.plan.plan_id, 2)
    raise AssertionError(outcome)


def shown(outcome: Any) -> dict[str, Any]:
    return {"plan_id": outcome.plan.plan_id}


def settled(task: Any, plan_id: str) -> Any:
    """What came of it, waited for as an agent does."""
    for _ in range(30):
        outcome = task.wait(plan_id, 10)
        if outcome.next_action not in ("wait", "replanning"):
            return outcome
    raise AssertionError(outcome)


@in_both
def test_a_person_approves_and_it_is_told_once(
    program: Reviewed, billing: Billing, ada: Person, ear: Ear
) -> None:
    invoice = billing.new_invoice()
    with program.guard().task(program.task_id) as task:
        waiting = proposed(task, wish(invoice), reason="Arrived damaged.")
        assert (waiting.status, waiting.next_action) == ("pending", "wait")
        same = task.propose("billing", "refund", wish(invoice))
        assert same.plan.plan_id == waiting.plan.plan_id
        ear.refused(PlanSubmitted, lambda: task.commit(waiting.plan.plan_id))
        assert "Arrived damaged." in ada.sees(shown(waiting))
        ada.approve_now(shown(waiting))
        done = settled(task, waiting.plan.plan_id)
        assert (done.status, done.next_action) == ("committed", "done")
        assert done.result["refunded_cents"] == 48_000
        assert task.propose("billing", "refund", wish(invoice)).result == done.result
        ear.heard(waiting, done, as_json(done), task.core.known, task.plans())
    (effect,) = billing.effects(invoice)
    assert effect["idempotency_key"] == waiting.plan.idempotency_key
    assert ear.commits == []


def test_the_token_is_dropped_when_the_server_has_it(
    program: Reviewed, billing: Billing, ear: Ear, tmp_path: Path
) -> None:
    store = JsonFileStore(tmp_path / "state.json")
    with program.guard(store).task(program.task_id) as task:
        proposed(task, wish(billing.new_invoice()))
        (token,) = ear.tokens
        assert not token.is_in(store.path.read_text())


def test_a_moved_world_comes_back_as_the_next_revision(
    program: Reviewed, billing: Billing, ada: Person
) -> None:
    invoice = billing.new_invoice()
    with program.guard().task(program.task_id) as task:
        first = proposed(task, wish(invoice))
        billing.refund_elsewhere(invoice, 20_000)
        ada.approve_now(shown(first))
        second = followed(task, first)
        assert second.plan.revision == 2
        ada.approve_now(shown(second))
        done = settled(task, first.plan.plan_id)
        assert done.result["amount_cents"] == 28_000
    assert [each["amount_cents"] for each in billing.effects(invoice)] == [28_000]


@pytest.mark.parametrize("left", [20_000, 48_000])
def test_the_agents_own_re_plan_is_made_while_it_waits(
    program: Reviewed, billing: Billing, ada: Person, left: int
) -> None:
    invoice = billing.new_invoice()
    with program.guard().task(program.task_id) as task:
        first = arrived(task, task.propose("desk", "refund", wish(invoice)))
        billing.refund_elsewhere(invoice, left)
        form = ada.decision_form(ada.page(first.plan.plan_id, "desk"))
        assert ada.approve(first.plan.plan_id, "desk", form).status_code == 303
        if left == 48_000:
            assert settled(task, first.plan.plan_id).next_action == "done"
            return
        second = followed(task, first)
        assert second.plan.revision == 2
        form = ada.decision_form(ada.page(second.plan.plan_id, "desk"))
        assert ada.approve(second.plan.plan_id, "desk", form).status_code == 303
        assert settled(task, first.plan.plan_id).result["amount_cents"] == 28_000
    assert [each["amount_cents"] for each in billing.effects(invoice)] == [28_000]


def followed(task: Any, first: Any) -> Any:
    """The plan that took the place of another, before people."""
    for _ in range(60):
        outcome = task.wait(first.plan.plan_id, 3)
        if outcome.status == "pending" and outcome.plan.plan_id != first.plan.plan_id:
            return outcome
    raise AssertionError(outcome)


@in_both
def test_a_write_of_the_agent_takes_its_plan_from_the_queue(
    program: Reviewed, billing: Billing, ada: Person, ear: Ear
) -> None:
    invoice = billing.new_invoice()
    guard = program.guard()

    @guard.mutating("invoice/{number}")  # type: ignore[untyped-decorator]  # either kind of guard
    def refund_by_hand(number: str) -> None:
        billing.refund_elsewhere(number, 1_000)

    with guard.task(program.task_id) as task:
        first = proposed(task, wish(invoice))
        form = ada.form(shown(first))
        refund_by_hand(invoice)
        assert ada.decide(shown(first), form=form).status_code in (409, 410)
        second = followed(task, first)
        ada.approve_now(shown(second))
        assert settled(task, second.plan.plan_id).result["amount_cents"] == 47_000
    assert len(billing.effects(invoice)) == 1


@pytest.mark.parametrize("why", ["expired", "written to"])
def test_a_plan_that_must_not_be_used_is_never_handed_over(
    program: Reviewed, billing: Billing, ear: Ear, why: str
) -> None:
    invoice = billing.new_invoice()
    with program.guard().task(program.task_id) as task:
        planned = task.plan("billing", "refund", wish(invoice))
        if why == "expired":
            program.later = timedelta(hours=1)
        else:
            task.wrote([f"invoice/{invoice}"], "a tool")
        handed = arrived(task, task.submit(planned.plan.plan_id, reason="Late."))
        assert handed.plan.plan_id != planned.plan.plan_id
        dead = planned.plan.plan_id
        ear.refused(NotFound, lambda: program.client().read_plan("billing", dead))


def test_requested_changes_become_the_next_revision(
    program: Reviewed, billing: Billing, ada: Person
) -> None:
    invoice = billing.new_invoice()
    with program.guard().task(program.task_id) as task:
        first = proposed(task, wish(invoice))
        ada.decide(shown(first), "request_changes", "Half of it, please.")
        told = settled(task, first.plan.plan_id)
        assert (told.status, told.next_action) == ("changes_requested", "replan")
        assert told.reason == "Half of it, please."
        second = arrived(task, task.revise(first.plan.plan_id, wish(invoice, 24_000)))
        assert second.plan.revision == 2
        ada.approve_now(shown(second))
        assert settled(task, second.plan.plan_id).result["amount_cents"] == 24_000
    assert [each["amount_cents"] for each in billing.effects(invoice)] == [24_000]


def test_a_changed_mind_replaces_the_plan_that_waits(
    program: Reviewed, billing: Billing, ada: Person
) -> None:
    invoice = billing.new_invoice()
    with program.guard().task(program.task_id) as task:
        first = proposed(task, wish(invoice))
        second = arrived(task, task.revise(first.plan.plan_id, wish(invoice, 100)))
        assert second.plan.revision == 2
        assert program.client().read_plan("billing", first.plan.plan_id).status == "superseded"
        gone = task.withdraw(second.plan.plan_id)
        assert (gone.status, gone.next_action) == ("abandoned", "stop")
    assert billing.effects(invoice) == []


def test_a_rejection_is_the_answer_to_the_same_wish(
    program: Reviewed, billing: Billing, ada: Person
) -> None:
    invoice = billing.new_invoice()
    with program.guard().task(program.task_id) as task:
        first = proposed(task, wish(invoice))
        ada.decide(shown(first), "reject", "Not ours to pay.")
        told = settled(task, first.plan.plan_id)
        assert (told.status, told.next_action) == ("rejected", "stop")
        assert (told.decision.by, told.reason) == ("ada", "Not ours to pay.")
        assert task.propose("billing", "refund", wish(invoice)).status == "rejected"
        asked_again = task.propose("billing", "refund", wish(invoice), again=True)
        assert asked_again.plan.plan_id != first.plan.plan_id
    assert billing.effects(invoice) == []


@in_both
def test_an_exception_ends_the_task_and_abandons_its_plans(
    program: Reviewed, billing: Billing, ear: Ear
) -> None:
    guard, plans = program.guard(), []

    def break_off() -> None:
        with guard.task(program.task_id) as task:
            plans.append(proposed(task, wish(billing.new_invoice())).plan)
            raise LookupError

    with pytest.raises(LookupError):
        break_off()
    told = program.client().read_plan("billing", plans[0].plan_id)
    assert (told.status, told.next_action) == ("abandoned", "stop")
    task = guard.task(program.task_id)
    late = wish(billing.new_invoice())
    ear.refused(TaskEnded, lambda: task.propose("billing", "refund", late))
    task.end()
    program.ear.refused(
        TaskEnded, lambda: guard.task(program.task_id).propose("billing", "refund", late)
    )


def test_nothing_else_is_proposed_while_the_outcome_is_unknown(
    program: Reviewed, billing: Billing, ada: Person, ear: Ear
) -> None:
    invoice = billing.new_invoice()
    with program.guard().task(program.task_id) as task:
        first = proposed(task, wish(invoice, 1_500))
        billing.arm("apply_then_timeout", seconds=20)
        ada.approve_now(shown(first))
        assert eventually(
            lambda: task.status(first.plan.plan_id).status in ("committing", "unknown")
        )
        ear.refused(OutcomeUnknown, lambda: task.propose("billing", "refund", wish(invoice, 1_400)))
        assert settled(task, first.plan.plan_id).status == "committed"
    assert [each["amount_cents"] for each in billing.effects(invoice)] == [1_500]


def test_the_agents_credential_cannot_walk_around_the_review(
    program: Reviewed, billing: Billing, ear: Ear
) -> None:
    invoice = billing.new_invoice()
    with program.guard().task(program.task_id) as task:
        planned = task.plan("billing", "refund", wish(invoice))
        refused = task.commit(planned.plan.plan_id)
        assert (refused.status, refused.next_action) == ("failed", "stop")
    assert billing.effects(invoice) == []


def test_without_a_way_to_the_target_the_server_makes_the_plan(
    program: Reviewed, billing: Billing, ada: Person, ear: Ear
) -> None:
    invoice = billing.new_invoice()
    with program.guard(targets=False).task(program.task_id) as task:
        for _ in range(10):
            waiting = task.propose("billing", "refund", wish(invoice), reason="Broken.")
            if waiting.plan is not None:
                break
        waiting = arrived(task, waiting)
        ada.approve_now(shown(waiting))
        assert settled(task, waiting.plan.plan_id).status == "committed"
    assert len(billing.effects(invoice)) == 1
    assert ear.tokens == []


# ── Answers that are lost ───────────────────────────────────────────────────────────────────
@pytest.fixture
def wire(product: Product) -> Iterator[Losing]:
    with Losing(product.port) as wire:
        threading.Thread(target=wire.serve_forever, args=[0.1], daemon=True).start()
        yield wire
        wire.closing.set()
        wire.shutdown()


def plans_of(program: Reviewed, task_id: str) -> list[str]:
    return [each.plan_id for each in program.client().list_plans(task_id=task_id).items]


@in_both
def test_a_submission_whose_answer_is_lost_is_made_once(
    program: Reviewed, billing: Billing, wire: Losing
) -> None:
    with program.guard(base_url=wire.url).task(program.task_id) as task:
        handed = task.propose("billing", "refund", wish(billing.new_invoice()))
        assert [each.path for each in wire.sent].count("/api/v1/plans") == 2
        assert plans_of(program, program.task_id) == [handed.plan.plan_id]


def test_a_submission_that_stays_unanswered_is_found_again(
    program: Reviewed, billing: Billing, wire: Losing, ear: Ear
) -> None:
    wire.times = 1_000
    with program.guard(base_url=wire.url, seconds=1.5).task(program.task_id) as task:
        inputs = wish(billing.new_invoice())
        ear.refused(Unanswered, lambda: task.propose("billing", "refund", inputs))
        wire.times = 0
        handed = task.propose("billing", "refund", inputs)
        assert plans_of(program, program.task_id) == [handed.plan.plan_id]


def test_an_intent_whose_answer_is_lost_is_opened_once(
    program: Reviewed, billing: Billing, wire: Losing, ear: Ear
) -> None:
    wire.loses = ("POST", "/api/v1/intents")
    with program.guard(targets=False, base_url=wire.url).task(program.task_id) as task:
        inputs = wish(billing.new_invoice())
        ear.refused(Unanswered, lambda: task.propose("billing", "refund", inputs))
        found = arrived(task, task.propose("billing", "refund", inputs))
        assert plans_of(program, program.task_id) == [found.plan.plan_id]


def test_a_program_that_is_killed_while_it_hands_over_does_not_ask_twice(
    program: Reviewed, billing: Billing, wire: Losing, tmp_path: Path
) -> None:
    wire.holds = 60.0
    inputs = wish(billing.new_invoice())
    killed_while_proposing(program, wire, tmp_path, inputs)
    with program.guard(JsonFileStore(tmp_path / "state.json")).task(program.task_id) as task:
        (left,) = task.plans()
        assert left.status == "submitting"
        handed = task.propose("billing", "refund", inputs)
        assert handed.plan.plan_id == left.plan_id
        assert plans_of(program, program.task_id) == [left.plan_id]


def killed_while_proposing(
    program: Reviewed, wire: Losing, folder: Path, inputs: dict[str, Any]
) -> None:
    raw = program.product.credentials
    told = [wire.url, program.key, raw.billing_url, program.agent_token, str(folder)]
    told += [program.task_id, json.dumps(inputs)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "sdk" / "src")}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    with subprocess.Popen(
        [sys.executable, str(HERE / "proposing.py")],
        env=environment | {"TOLD": json.dumps(told)},
    ) as child:
        assert eventually(lambda: any(each.path == "/api/v1/plans" for each in wire.sent))
        child.kill()


# ── The plain client ────────────────────────────────────────────────────────────────────────
def test_the_events_are_in_order_and_none_is_told_twice(
    program: Reviewed, billing: Billing, ada: Person
) -> None:
    client, cursor, told = program.client(), None, []
    while (page := client.read_events(cursor, limit=200)).items:
        cursor = page.next
    with program.guard().task(program.task_id) as task:
        waiting = proposed(task, wish(billing.new_invoice()))
        ada.approve_now(shown(waiting))
        settled(task, waiting.plan.plan_id)
    for _ in range(20):
        page = client.read_events(cursor, wait=5)
        told += [each for each in page.items if each.task_id == program.task_id]
        cursor = page.next
        if any(each.type == "task.ended" for each in told):
            break
    states = [each.to for each in told if each.to and each.plan_id == waiting.plan.plan_id]
    assert states == ["pending", "approved", "committing", "committed"]
    assert len({each.id for each in told}) == len(told)


@in_both
def test_lists_evidence_and_claims(program: Reviewed, billing: Billing) -> None:
    client = program.client()
    with program.guard().task(program.task_id) as task:
        plan = proposed(task, wish(billing.new_invoice())).plan
        client.add_evidence("billing", plan.plan_id, "Photo", text="A crack.")
        (listed,) = client.list_plans(task_id=program.task_id).items
        assert listed.plan_id == plan.plan_id
        assert client.claim_replan() is None
        told = client.read_plan("billing", plan.plan_id)
        assert client.wait_for_plan(told, 1) == told
        intent = client.read_intent(told.intent_id)
        assert intent.asked.inputs == plan.inputs
        assert client.abandon_plan("billing", plan.plan_id, "other").outcome == "abandoned"
        assert client.end_task(program.task_id, "done").abandoned == ()


@in_both
def test_refusals_are_told_apart(program: Reviewed, ear: Ear) -> None:
    client = program.client()
    ear.refused(NotFound, lambda: client.read_plan("billing", "plan_nobody_has"))
    fault = ear.refused(RequestFault, lambda: client.report_writes("t", [], "tool"))
    assert isinstance(fault, Refused)
    assert fault.problem.errors[0].pointer == "/objects"
    assert fault.next_action == "fix_request"
    program.key = "cs_wrong_key"
    ear.refused(Unauthenticated, lambda: program.client().list_plans())


def test_no_token_is_in_any_log(product: Product, ear: Ear, billing: Billing) -> None:
    with asyncio.Runner() as runner:
        program = Reviewed("threads", ear, product, runner)
        with program.guard().task(program.task_id) as task:
            proposed(task, wish(billing.new_invoice()))
            ear.heard(task.end("enough"))
        for close in program.closing:
            close()
    for file in (product.home / "logs").iterdir():
        ear.heard(file.read_text())


def test_the_page_tells_the_news(program: Reviewed, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "sdk" / "README.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (source,) = [block for block in blocks if "tell_news" in block]
    scope: dict[str, Any] = {}
    exec(source, scope)
    cursor, before = scope["tell_news"](program.client(), None), ""
    while cursor != before:
        before, cursor = cursor, scope["tell_news"](program.client(), cursor)
        if "plan.committed" in capsys.readouterr().out:
            return
    raise AssertionError("nothing was told")


# ── The page of the package ─────────────────────────────────────────────────────────────────
def test_the_quick_start_is_true(
    product: Product, billing: Billing, ada: Person, tmp_path: Path
) -> None:
    page = (ROOT / "sdk" / "README.md").read_text()
    first = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[0]
    (tmp_path / "first.py").write_text(first)
    (tmp_path / ".demo").symlink_to(product.home)
    assert "PYTHONPATH=sdk/src .venv/bin/python first.py" in page
    environment = os.environ | {"PYTHONPATH": str(ROOT / "sdk" / "src")}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    with subprocess.Popen(
        [sys.executable, "first.py"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        plan_id = program.stdout.readline().rstrip("/\n").rpartition("/")[2]
        plan = {"plan_id": plan_id}
        assert eventually(lambda: "Approve" in ada.sees(plan))
        ada.approve_now(plan)
        assert program.stdout.read().startswith("committed ")
    assert [each["amount_cents"] for each in billing.effects("4471")] == [1_500]
