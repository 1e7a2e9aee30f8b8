"""docs/targets.md is true: its files run, its example is replayed, its tables name what exists."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from psycopg import conninfo

from countersign_agent.conformance.catalogue import NAMES
from plans.models import Operation, Target
from tests.target.ready.processes import (
    AGENT_TOKEN,
    APP_TOKEN,
    ROOT,
    Customers,
    Ready,
    customers,
    new_database,
)

PAGE = (ROOT / "docs" / "targets.md").read_text()
READY = ROOT / "target" / "src" / "countersign_target" / "ready"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


CRM, ACCOUNTS, REGISTRATION = blocks("toml")


@pytest.fixture
def api() -> Iterator[Customers]:
    with customers() as api:
        yield api


@pytest.fixture
def crm(api: Customers, tmp_path: Path) -> Iterator[Ready]:
    """The page's file, at a free port, with the API of the tests behind it."""
    file = tmp_path / "crm.toml"
    moved = CRM.replace("port = 8300", "port = 0").replace("https://crm.example.com", api.url)
    file.write_text(moved.replace("/var/lib/countersign", str(tmp_path)))
    tokens = {"CRM_TARGET_TOKEN": APP_TOKEN, "CRM_TARGET_AGENT_TOKEN": AGENT_TOKEN}
    with Ready("etag", file, "add_credit", CRM_API_TOKEN=api.token, **tokens) as target:
        yield target


def test_the_worked_example_happens_as_it_is_told(api: Customers, crm: Ready) -> None:
    api.move("77", id="77", email="a@example.com", credit_cents=1000, limit_cents=5000)
    (planning, *commits), (plan, applied, refused) = blocks("http"), blocks("json")
    made = _sent(crm, planning)
    _compare(made, json.loads(plan))
    _compare(_sent(crm, commits[0], made), json.loads(applied))
    made = _sent(crm, planning)
    api.move("77", credit_cents=4000)
    _compare(_sent(crm, commits[1], made), json.loads(refused))
    assert len(api.writes("77")) == 1


def _sent(target: Ready, text: str, made: dict[str, Any] | None = None) -> dict[str, Any]:
    """Send a request as the page has it; a commit gets the values of the plan that was made."""
    head, _, body = text.partition("\n\n")
    first, *lines = head.splitlines()
    method, path = first.split(" ")
    headers = dict(line.split(": ", 1) for line in lines)
    client = target.agent if "AGENT" in headers.pop("Authorization") else target.app
    members = json.loads(body)
    if made is not None:
        members = {name: made[name] for name in members}
    answer = client.request(method, path, content=json.dumps(members), headers=headers)
    return dict(answer.json())


def _compare(found: Any, told: Any) -> None:
    """Equal, but for texts that the page breaks off with an ellipsis, and for moments."""
    if isinstance(told, dict):
        assert found.keys() == told.keys()
        for name, value in told.items():
            _compare(found[name], value)
    elif isinstance(told, str) and told.endswith("…"):
        assert found.startswith(told[:-1])
    else:
        assert found == told


@pytest.fixture
def database() -> Iterator[str]:
    """With the page's tables and the page's role, which has a password for servers that ask."""
    (tables,) = blocks("sql")
    with new_database() as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS accounts_target")
        connection.execute(tables.encode())
        connection.execute("ALTER ROLE accounts_target PASSWORD 'of-the-tests'")
        connection.execute("INSERT INTO accounts (id, tier) VALUES (7, 'trial')")
        connection.execute("INSERT INTO seats VALUES (7, 1, 'Ada'), (7, 2, 'Grace')")
        yield url
        connection.execute("DROP OWNED BY accounts_target")
        connection.execute("DROP ROLE accounts_target")


def test_the_tables_and_the_role_are_enough_for_the_file(database: str, tmp_path: Path) -> None:
    file = tmp_path / "accounts.toml"
    file.write_text(ACCOUNTS.replace("port = 8301", "port = 0"))
    environment = {
        "ACCOUNTS_TARGET_TOKEN": APP_TOKEN,
        "ACCOUNTS_TARGET_AGENT_TOKEN": AGENT_TOKEN,
        "ACCOUNTS_DATABASE_URL": conninfo.make_conninfo(
            database, user="accounts_target", password="of-the-tests"
        ),
    }
    with Ready("postgres", file, "close_account", **environment) as ready:
        plan = ready.plan(account_id=7)
        assert plan["covers"] == ["account/7", "seat/7,1", "seat/7,2"]
        assert ready.commit(plan).status_code == 200
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM seats").fetchone() == (0,)


@pytest.mark.django_db
def test_the_registration_can_be_applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRM_TARGET_TOKEN", APP_TOKEN)
    file = tmp_path / "crm.toml"
    file.write_text(REGISTRATION)
    call_command("apply_config", str(file))
    operation = Operation.objects.get(target=Target.objects.get(name="crm"))
    (served,) = tomllib.loads(CRM)["operations"]
    assert operation.name == served["name"]
    assert operation.dry_run_path == f"/{served['name']}/dry_run"
    assert operation.commit_path == f"/{served['name']}/commit"


def test_every_key_that_is_told_is_read() -> None:
    """And none is read that is not told."""
    told = set(re.findall(r"`(?:\w+\.)*(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", PAGE, re.M))))
    told |= set(re.findall(r"`(\w+)`", PAGE))
    code = "".join(path.read_text() for path in READY.rglob("*.py"))
    calls = r"\.(?:text|one_of|number|whole|flag|texts|secret|value)\(\s*\"(\w+)\""
    wrapped = r"(?:_template|_only_for)\(table, \"(\w+)\""
    read = set(re.findall(calls, code)) | set(re.findall(wrapped, code))
    assert read - told - {"input", "value", "remove", "add", "at_most"} == set()
    tables = r"`(?:server|store|database|api|operations(?:\.covers)?)\.(\w+)`"
    assert set(re.findall(tables, PAGE)) - read - {"covers", "headers", "also"} == set()


def test_the_mistakes_are_about_checks_that_exist() -> None:
    rows = PAGE.partition("## The usual mistakes")[2]
    named = re.findall(r"^\| `([a-z-]+)` \|", rows, re.MULTILINE)
    assert len(named) > 8
    assert set(named) <= set(NAMES)


def test_the_commands_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "target" / "pyproject.toml").read_text())["project"]
    commands = set(re.findall(r"\bcountersign-(?:etag|postgres)-target\b", PAGE))
    assert commands == set(project["scripts"])
