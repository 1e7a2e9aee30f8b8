"""Both ready targets under the check that every target is held against."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from countersign_agent.conformance import command
from tests.target.ready.conftest import start_etag_target, start_sql_target
from tests.target.ready.processes import AGENT_TOKEN, APP_TOKEN, Accounts, Customers, Ready

ENVIRONMENT = {"COUNTERSIGN_TARGET_TOKEN": APP_TOKEN, "COUNTERSIGN_TARGET_AGENT_TOKEN": AGENT_TOKEN}


def check(
    capsys: pytest.CaptureFixture[str], target: Ready, wish: str, move: str
) -> dict[str, str]:
    """Run the command to its end; verdicts by check. A finding fails, with its words."""
    options = [target.url, "--operation", target.operation, "--commit", "--json"]
    options += [
        "--key-retention",
        "86400",
        "--move-state",
        move,
        "--inputs",
        wish,
        "--short-plans",
        "Plan-Seconds: 2",
    ]
    code = command.main(options, ENVIRONMENT)
    report = json.loads(capsys.readouterr().out)
    assert code == 0, json.dumps(report, indent=1)
    return {each["check"]: each["verdict"] for each in report["checks"]}


def test_the_etag_target_conforms(
    capsys: pytest.CaptureFixture[str], api: Customers, tmp_path: Path
) -> None:
    number = api.new()
    wish = f'{{"customer_id":"{number}","add_cents":1}}'
    order = json.dumps({"id": number, "count": "visits"})
    with start_etag_target(api, tmp_path, settle_by="marker") as target:
        verdicts = check(capsys, target, wish, f"POST {api.url}/_move {order}")
    assert set(verdicts.values()) == {"ok"}


def test_the_postgresql_target_conforms(
    capsys: pytest.CaptureFixture[str], accounts_url: str, accounts: Accounts, tmp_path: Path
) -> None:
    number = accounts.new()
    wish = f'{{"account_id":{number}}}'
    move = f"UPDATE accounts SET visits = 1 + visits % 1000 WHERE id = {number}"
    program = (
        f"import psycopg; psycopg.connect({accounts_url!r}, autocommit=True).execute({move!r})"
    )
    with start_sql_target(accounts_url, tmp_path, "give_credit") as target:
        verdicts = check(capsys, target, wish, shlex.join([sys.executable, "-c", program]))
    assert set(verdicts.values()) == {"ok"}
