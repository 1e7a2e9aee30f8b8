"""The same checks, asked for by an operator and made by the app, outside of any request."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from audit import actors
from audit.models import Event
from audit.sentences import sentence
from plans import contract_runs, custody
from plans.clock import clock
from plans.models import ContractRun, Operation, Plan, Target
from plans.sweeper import Lane, due_work
from tests.architecture.test_source import ROOT, files, hits
from tests.conformance.counting import APP, Counting
from tests.conformance.faults.edge import HtmlRefusals
from tests.conformance.faults.hostile import HangsAlways, Shouts
from tests.conformance.serving import listening

EXAMPLE = {"counter": "stock", "add": 1}
NOW = timedelta(0)

type Serve = Callable[[Counting], Operation]


@pytest.fixture
def serve(db: None, settings: Any) -> Iterator[Serve]:
    """`serve(target)` lets it listen, and gives the operation that the app knows it by."""
    settings.GATEWAY_ALLOW_IN_TRANSACTION = True
    with ExitStack() as stack:

        def start(target: Counting) -> Operation:
            row = Target.objects.create(
                name="counting",
                base_url=stack.enter_context(listening(target)),
                internal=True,
                credential=custody.encrypt(APP.encode()),
                plan_path="/plans/{plan_id}",
                key_retention_seconds=86_400,
                total_timeout_seconds=5,
            )
            return Operation.objects.create(
                target=row,
                name="add",
                dry_run_path="/add/dry_run",
                commit_path="/add/commit",
                inputs_schema={"type": "object", "examples": [EXAMPLE]},
            )

        yield start


@pytest.fixture
def asked(otto: User) -> Callable[[Operation], ContractRun]:
    return lambda operation: contract_runs.ask(operation, actors.person(otto))


type Asked = Callable[[Operation], ContractRun]


def done(run: ContractRun) -> ContractRun:
    contract_runs.conduct(run.pk)
    return ContractRun.objects.get(pk=run.pk)


def test_a_run_makes_the_checks_that_need_no_commit_and_no_other(
    serve: Serve, asked: Asked
) -> None:
    target = Counting()
    run = done(asked(serve(target)))
    assert run.status == "done"
    assert run.finished_at is not None
    report = run.report
    assert (report["conforms"], report["commits"], target.applied) == (True, 0, 0)
    assert target.counters == {"stock": 0}
    assert {one["check"] for one in report["checks"] if one["verdict"] == "ok"} == {
        "dry-run", "read-back", "key-order", "opaque-token", "credentials", "clock", "problems",
        "sizes", "key-retention",
    }  # fmt: skip
    assert run.made == 9
    assert all(one["not_run"] for one in report["checks"] if one["verdict"] == "not_run")


def test_the_report_holds_no_secret_and_nothing_of_a_plan(serve: Serve, asked: Asked) -> None:
    target = Shouts()
    text = json.dumps(done(asked(serve(target))).report, ensure_ascii=False)
    assert APP not in text
    assert "stock" not in text
    assert not [plan for plan in target.plans.values() if plan.token in text]
    assert "\x1b" not in text


def test_an_address_that_is_not_allowed_is_not_called(serve: Serve, asked: Asked) -> None:
    """SEC-15: the checks go the way that every call to a target goes."""
    target = Counting()
    operation = serve(target)
    Target.objects.update(internal=False)
    run = done(asked(operation))
    assert run.report["stopped"] == "the target cannot be reached (address-blocked)"
    assert target.calls == 0


def test_a_target_that_hangs_ends_with_a_report(serve: Serve, asked: Asked) -> None:
    operation = serve(HangsAlways())
    Target.objects.update(total_timeout_seconds=0.2)
    run = done(asked(operation))
    assert run.status == "done"
    assert run.report["seconds"] < 5
    assert "no answer in time" in run.report["checks"][0]["wrong"][0]


def test_a_target_without_a_read_back_is_told_what_it_lacks(serve: Serve, asked: Asked) -> None:
    operation = serve(Counting())
    Target.objects.update(plan_path="", key_retention_seconds=None)
    found = {one["check"]: one["wrong"] for one in done(asked(operation)).report["checks"]}
    assert {name for name, words in found.items() if words} == {"read-back", "key-retention"}


def test_asking_twice_is_one_run(serve: Serve, asked: Asked) -> None:
    operation = serve(Counting())
    assert asked(operation) == asked(operation)
    (event,) = Event.objects.filter(action="contract.test_asked")
    assert str(sentence(event)) == "otto asked for a test of the contract of counting"
    assert event.details == {"operation": "add"}


def test_what_was_found_is_in_the_trail(serve: Serve, asked: Asked) -> None:
    done(asked(serve(HtmlRefusals())))
    event = Event.objects.get(action="contract.tested")
    assert "The contract of counting was tested: 1 check found something wrong" in str(
        sentence(event)
    )


def test_the_latest_reports_are_kept(serve: Serve, asked: Asked) -> None:
    operation = serve(Counting())
    for _ in range(contract_runs.KEPT + 2):
        ContractRun.objects.update(status="lost")
        last = asked(operation)
    assert ContractRun.objects.count() == contract_runs.KEPT
    assert contract_runs.latest([operation.target_id]) == {operation.target_id: last}


def test_the_sweep_finds_a_run_whose_bell_was_lost(serve: Serve, asked: Asked) -> None:
    run = asked(serve(Counting()))
    assert list(contract_runs.due(NOW)) == [run.pk]
    ContractRun.objects.update(due_at=clock() - timedelta(seconds=2))
    (work,) = [one for one in due_work() if one.lane is Lane.CHECKS]
    work()
    assert ContractRun.objects.get().status == "done"
    assert list(contract_runs.due(NOW)) == []


def test_a_run_is_made_once_however_often_it_is_rung_for(serve: Serve, asked: Asked) -> None:
    target = Counting()
    run = done(asked(serve(target)))
    calls = target.calls
    assert done(run).finished_at == run.finished_at
    assert target.calls == calls


def test_a_run_under_way_is_nobody_elses_until_its_lease_is_over(
    serve: Serve, asked: Asked
) -> None:
    target = Counting()
    run = asked(serve(target))
    ContractRun.objects.update(status="running", tries=1, due_at=clock() + contract_runs.LEASE / 2)
    assert done(run).status == "running"
    ContractRun.objects.update(due_at=clock() - timedelta(seconds=1))
    assert done(run).status == "done"


def test_a_run_that_no_worker_finishes_is_given_up(serve: Serve, asked: Asked) -> None:
    target = Counting()
    run = asked(serve(target))
    past = clock() - timedelta(seconds=1)
    ContractRun.objects.update(status="running", tries=contract_runs.TRIES, due_at=past)
    assert done(run).status == "lost"
    assert target.calls == 0
    assert list(contract_runs.due(NOW)) == []


@pytest.mark.parametrize("schema", [None, {"type": "object"}, {"examples": []}])
def test_without_examples_the_latest_plans_give_the_inputs(
    schema: Any, refund: Operation, make_plan: Callable[..., Plan]
) -> None:
    refund.inputs_schema = schema
    assert contract_runs.wishes(refund) == []
    for inputs in (b'{"a":1}', b'{"a":2}', b'{"a":2}'):
        make_plan(inputs=inputs)
    assert contract_runs.wishes(refund) == [b'{"a":2}', b'{"a":1}']


# ── The page ─────────────────────────────────────────────────────────────────────────────────────
@pytest.fixture
def page(client: Client, otto: User) -> Client:
    client.force_login(otto)
    return client


def test_an_operator_tests_a_contract_and_reads_what_was_found(serve: Serve, page: Client) -> None:
    serve(HtmlRefusals())
    assert "Test the contract" in page.get("/settings/").text
    assert "It was not tested yet." in page.get("/targets/counting/contract/").text
    answer = page.post("/targets/counting/contract/test/", {"operation": "add"}, follow=True)
    assert "every 2s" in answer.text
    assert "otto asked for is about to begin" in answer.text
    done(ContractRun.objects.get())
    shown = page.get("/targets/counting/contract/").text
    assert "every 2s" not in shown
    for words in (
        "1 wrong",
        "The refusal of a body that is not JSON has the type “text/html”, not problem+json",
        "The app acts on status and code.",
        "A plan reads back as it was planned",
        "Needs --commit",
        "countersign-check-target http://127.0.0.1:",
        "--operation add --inputs inputs.json --key-retention 86400 --commit",
    ):
        assert words in shown
    assert "1 wrong" in page.get("/settings/").text


def test_htmx_gets_the_report_alone(serve: Serve, asked: Asked, page: Client) -> None:
    asked(serve(Counting()))
    answer = page.get("/targets/counting/contract/", headers={"HX-Request": "true"})
    assert answer.text.lstrip().startswith('<div id="report"')


def test_what_a_target_says_is_text_on_the_page(serve: Serve, asked: Asked, page: Client) -> None:
    done(asked(serve(Shouts())))
    shown = page.get("/targets/counting/contract/").text
    assert "⟨U+202E⟩" in shown
    assert "`" not in shown
    assert "\u202e" not in shown


def test_without_inputs_the_page_says_what_is_missing(serve: Serve, page: Client) -> None:
    serve(Counting())
    Operation.objects.update(inputs_schema=None)
    answer = page.post("/targets/counting/contract/test/", {"operation": "add"}, follow=True)
    assert "There are no inputs to test add with" in answer.text
    assert not ContractRun.objects.exists()


@pytest.mark.parametrize("operation", ["", "other", "a\0b"])
def test_an_operation_that_is_none_is_not_tested(
    serve: Serve, page: Client, operation: str
) -> None:
    serve(Counting())
    page.post("/targets/counting/contract/test/", {"operation": operation})
    assert not ContractRun.objects.exists()


def test_every_process_of_the_app_finds_the_checks_from_its_beginning() -> None:
    tell = "import config, countersign_agent.conformance as found; print(found.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", tell],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    assert Path(done.stdout).is_relative_to(ROOT / "sdk" / "src")


def test_no_path_is_changed_while_the_app_runs() -> None:
    apps = [path for app in ("plans", "approvals") for path in files(f"{app}/*.py")]
    assert hits(r"sys\.path", apps) == []
