"""The ready targets behind the running product: from a file to a commit, and to a world that moved.

An HTTP API with ETags and a PostgreSQL database, as one finds them, with nothing written for them
but a file each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest
from psycopg import conninfo
from psycopg.rows import dict_row

from tests.journeys.people import Agent, Person, Plan, is_, words
from tests.journeys.product import Product
from tests.target.ready import postgres_files
from tests.target.ready.conftest import start_etag_target, start_sql_target
from tests.target.ready.processes import APP_TOKEN, Accounts, Customers, Ready, customers

CONFIG = """
[[targets]]
name = "{name}"
base_url = "{url}"
internal = true
credential = "env:READY_TOKEN"
plan_path = "/plans/{{plan_id}}"
enforces_expiry = true
consumed_plans_readable = true
total_timeout_seconds = 6
read_timeout_seconds = 4
reviewers = ["reviewers"]

[[targets.operations]]
name = "{operation}"
title = "{title}"
dry_run_path = "/{operation}/dry_run"
commit_path = "/{operation}/commit"
replan = "server"
risk = "medium"
"""


def register(product: Product, target: Ready, name: str, title: str) -> None:
    """What an operator does once."""
    file = product.home / f"{name}.toml"
    values = {"name": name, "url": target.url, "operation": target.operation, "title": title}
    file.write_text(CONFIG.format(**values))
    product.manage("apply_config", str(file), READY_TOKEN=APP_TOKEN)


def wait(agent: Agent, target: str, plan: Plan, *statuses: str) -> Plan:
    """Long-poll a plan until it has come to one of these."""
    return agent.watch(f"/plans/{target}/{plan['plan_id']}", is_(*statuses))[-1]


def successor(agent: Agent, target: str, dead: Plan) -> Plan:
    path = f"/plans/{target}/{dead['plan_id']}"
    dead = agent.watch(path, lambda now: bool(now["replaced_by"]))[-1]
    return wait(agent, target, {"plan_id": dead["replaced_by"]}, "pending")


def approve(ada: Person, target: str, plan: Plan) -> str:
    """Read the page, press the button; what the page said."""
    page = ada.page(plan["plan_id"], target)
    answer = ada.approve(plan["plan_id"], target, ada.decision_form(page))
    assert answer.status_code == httpx.codes.SEE_OTHER, words(answer.text)
    return words(page)


# ── An HTTP API with ETags ──────────────────────────────────────────────────────────────────
@pytest.fixture(scope="module")
def api() -> Iterator[Customers]:
    with customers() as api:
        yield api


@pytest.fixture(scope="module")
def etag_target(
    product: Product, agent: Agent, api: Customers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ready]:
    title = "Add {delta.credit_cents:money:EUR} to the credit of {object}"
    with start_etag_target(api, tmp_path_factory.mktemp("etag"), settle_by="marker") as target:
        register(product, target, "customers", title)
        yield target


def submit(agent: Agent, target: Ready, inputs: dict[str, Any]) -> Plan:
    """The agent's own dry run, with the credential that cannot commit."""
    body = {
        "target": "customers",
        "operation": target.operation,
        "task_id": f"customer-{inputs['customer_id']}",
        "inputs": inputs,
        "plan": target.plan(**inputs),
    }
    answer = agent.app.post("/plans", json=body)
    assert answer.status_code == 201, answer.text
    return wait(agent, "customers", answer.json(), "pending")


def test_an_api_with_etags_is_changed_once_ada_approved(
    agent: Agent, ada: Person, api: Customers, etag_target: Ready
) -> None:
    number = api.new()
    plan = submit(agent, etag_target, {"customer_id": number, "add_cents": 2_500})
    assert plan["verified"]
    page = approve(ada, "customers", plan)
    assert f"Add 25.00 EUR to the credit of customer/{number}" in page
    assert re.search("if_unanswered.? +looked up in the field changed_by", page), page
    done = wait(agent, "customers", plan, "committed")
    assert done["commit"]["result"]["fields"] == {"credit_cents": 3_500}
    (write,) = api.writes(number)
    assert write["sent"] == {"credit_cents": 3_500, "changed_by": plan["plan_id"]}


def test_an_api_that_moved_is_planned_again_and_says_what_moved(
    agent: Agent, ada: Person, api: Customers, etag_target: Ready
) -> None:
    number = api.new()
    plan = submit(agent, etag_target, {"customer_id": number, "add_cents": 4_000})
    api.move(number, credit_cents=3_000)
    approve(ada, "customers", plan)
    dead = wait(agent, "customers", plan, "conflicted")
    (change,) = dead["commit"]["conflict"]["changed"]
    assert (change["path"], change["planned"], change["current"]) == ("credit_cents", 1000, 3000)
    fresh = successor(agent, "customers", dead)
    page = approve(ada, "customers", fresh)
    assert f"Add 20.00 EUR to the credit of customer/{number}" in page
    assert "credit_cents moved from 1000 to 3000" in page
    assert wait(agent, "customers", fresh, "committed")["revision"] == 2
    assert (len(api.writes(number)), api.now(number)["credit_cents"]) == (1, 5_000)


def test_an_answer_of_the_api_that_got_lost_is_told_once_as_it_was(
    agent: Agent, ada: Person, api: Customers, etag_target: Ready
) -> None:
    number = api.new()
    plan = submit(agent, etag_target, {"customer_id": number, "add_cents": 100})
    api.arm(write="apply-reset")
    approve(ada, "customers", plan)
    done = wait(agent, "customers", plan, "committed", "unresolved", "failed")
    assert (done["status"], done["commit"]["result"]["settled_by"]) == ("committed", "marker")
    assert (len(api.writes(number)), api.now(number)["credit_cents"]) == (1, 1_100)


# ── PostgreSQL ──────────────────────────────────────────────────────────────────────────────
@pytest.fixture(scope="module")
def accounts_url(product: Product) -> str:
    """An application's database, on the server that is there."""
    server = product.credentials.database_url
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE accounts")
    url = conninfo.make_conninfo(server, dbname="accounts")
    with psycopg.connect(url) as connection:
        connection.execute(postgres_files.TABLES.encode())
    return url


@pytest.fixture(scope="module")
def accounts(accounts_url: str) -> Iterator[Accounts]:
    with psycopg.connect(accounts_url, autocommit=True, row_factory=dict_row) as connection:
        yield Accounts(connection)


@pytest.fixture(scope="module")
def sql_target(
    product: Product, agent: Agent, accounts_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ready]:
    with start_sql_target(accounts_url, tmp_path_factory.mktemp("sql"), "extend_trial") as target:
        register(product, target, "accounts", "Extend the trial of {object} to {to.trial_ends}")
        yield target


def ask(agent: Agent, number: int) -> Plan:
    """Only what is wished for: the product makes the dry run."""
    body = {
        "target": "accounts",
        "operation": "extend_trial",
        "task_id": f"account-{number}",
        "inputs": {"account_id": number, "days": 14},
    }
    answer = agent.app.post("/intents", json=body)
    assert answer.status_code == 201, answer.text
    path = answer.json()["links"]["self"].partition("/api/v1")[2]
    intent = agent.watch(path, lambda now: bool(now["plan"]))[-1]
    return wait(agent, "accounts", intent["plan"], "pending")


@pytest.mark.usefixtures("sql_target")
def test_a_row_is_changed_once_ada_approved(agent: Agent, ada: Person, accounts: Accounts) -> None:
    number = accounts.new()
    plan = ask(agent, number)
    assert accounts.writes(number) == 0
    assert f"Extend the trial of account/{number} to 2026-12-15" in approve(ada, "accounts", plan)
    done = wait(agent, "accounts", plan, "committed")
    row = {f"account/{number}": {"trial_ends": "2026-12-15"}}
    assert done["commit"]["result"] == {"changed": row}
    assert accounts.now(number)["trial_ends"].isoformat() == "2026-12-15"
    assert accounts.writes(number) == 1


@pytest.mark.usefixtures("sql_target")
def test_a_row_that_moved_is_planned_again_and_says_which_column(
    agent: Agent, ada: Person, accounts: Accounts
) -> None:
    number = accounts.new()
    plan = ask(agent, number)
    accounts.run("UPDATE accounts SET trial_ends = '2026-12-06' WHERE id = %s", number)
    approve(ada, "accounts", plan)
    dead = wait(agent, "accounts", plan, "conflicted")
    (change,) = dead["commit"]["conflict"]["changed"]
    assert change == {
        "path": "trial_ends",
        "target": f"account/{number}",
        "planned": "2026-12-01",
        "current": "2026-12-06",
    }
    fresh = successor(agent, "accounts", dead)
    page = approve(ada, "accounts", fresh)
    assert f"Extend the trial of account/{number} to 2026-12-20" in page
    assert re.search("trial_ends moved from .?2026-12-01.? to .?2026-12-06", page)
    assert wait(agent, "accounts", fresh, "committed")["revision"] == 2
    assert accounts.now(number)["trial_ends"].isoformat() == "2026-12-20"
