"""The demo's billing keeps the contract, as a process, over HTTP, on PostgreSQL."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
from psycopg import conninfo, sql

from config import embedded
from countersign_agent.conformance.command import main
from tests.demo.billing_process import AGENT_TOKEN, APP_TOKEN, Target, running

ENVIRONMENT = {"COUNTERSIGN_TARGET_TOKEN": APP_TOKEN, "COUNTERSIGN_TARGET_AGENT_TOKEN": AGENT_TOKEN}


@pytest.fixture(scope="module")
def billing() -> Iterator[Target]:
    """Billing on a database of its own, which it makes by itself."""
    named = os.environ.get("BILLING_TEST_DATABASE_URL") or os.environ.get("DATABASE_URL")
    server = conninfo.make_conninfo(
        named or embedded.Cluster().urls()["postgres"], dbname="postgres"
    )
    name = f"test_countersign_conformance_{uuid4().hex[:12]}"
    try:
        with running(conninfo.make_conninfo(server, dbname=name)) as target:
            yield target
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
            connection.execute(drop.format(sql.Identifier(name)))


def test_billing_keeps_the_whole_contract(
    billing: Target, capsys: pytest.CaptureFixture[str]
) -> None:
    invoice = billing.new_invoice(1_000_000)
    arguments = [billing.url, "--operation", "refund", "--key-retention", "86400"]
    arguments += ["--inputs", json.dumps({"amount_cents": 100, "invoice_id": invoice})]
    arguments += ["--move-state", f'POST /invoices/{invoice}/external_refund {{"amount_cents": 1}}']
    arguments += ["--short-plans", "Plan-Seconds: 5", "--commit", "--json"]
    code = main(arguments, ENVIRONMENT)
    report = json.loads(capsys.readouterr().out)
    found = {
        each["check"]: each["wrong"] or each["not_run"] or each["look"] for each in report["checks"]
    }
    assert {name: words for name, words in found.items() if words} == {}
    assert (code, report["complete"]) == (0, True)
    refunds = [each for each in billing.app.get("/_ledger").json()["items"] if each["plan_id"]]
    assert len(refunds) == report["commits"]
