"""target/README.md is true: its quick start is run as it stands, its snippets serve."""

from __future__ import annotations

import ast
import json
import os
import re
import runpy
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import httpx
import pytest
from django.core.management import call_command
from django.urls import URLResolver
from flask import Flask
from starlette.applications import Starlette
from starlette.testclient import TestClient

import countersign_target
from plans.models import Target

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "target" / "README.md"
TOKENS = {
    "LEDGER_TOKEN": "only-countersign-knows-this",
    "LEDGER_AGENT_TOKEN": "agents-may-know-this",
}


def blocks(language: str) -> list[str]:
    """The fenced code of one language, in order."""
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [text for name, text in fences if name == language]


class Reader:
    """Somebody who does what the page says, in a folder of their own at a port that is free."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = str(free.getsockname()[1])
        (folder / "ledger.py").write_text(self.here(blocks("python")[0]))
        self.environment = os.environ | TOKENS

    def here(self, text: str) -> str:
        for source in ("target/src", "sdk/src"):
            text = text.replace(f"={source}", f"={ROOT / source}")
        return text.replace("8200", self.port).replace(".venv/bin/python", sys.executable)

    def runs(self, script: str) -> str:
        command = ["bash", "-euc", self.here(script)]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    reader = Reader(tmp_path_factory.mktemp("reader"))
    start = f"exec {blocks('sh')[0].splitlines()[1].partition(' ')[2]}"
    environment = reader.environment | {"PYTHONPATH": str(ROOT / "target" / "src")}
    with subprocess.Popen(
        ["bash", "-euc", reader.here(start)],
        cwd=reader.folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert reader.port in process.stdout.readline()
        yield reader
        process.terminate()


def test_the_quick_start_commits_once(reader: Reader) -> None:
    plan = json.loads(reader.runs(blocks("sh")[1]))
    [action] = plan["actions"]
    assert (action["from"], action["to"]) == (120_000, 100_000)
    shown = json.loads(blocks("json")[0])
    assert (plan["actions"], set(plan)) == (shown["actions"], set(shown))
    said = reader.runs(blocks("sh")[2])
    assert said.count("HTTP/1.1 200") == 2
    assert said.count('"result":{"customer":"acme","cents":100000}') == 2
    assert said.count("Idempotent-Replayed: true") == 1
    commit = json.loads((reader.folder / "commit.json").read_text())
    headers = {"Authorization": f"Bearer {TOKENS['LEDGER_AGENT_TOKEN']}"}
    url = f"http://127.0.0.1:{reader.port}/write_off/commit"
    assert httpx.post(url, json=commit, headers=headers, trust_env=False).status_code == 403


def test_the_quick_start_conforms(reader: Reader) -> None:
    checks = blocks("sh")[3].partition("\n\n")[0]
    begun = time.monotonic()
    report = reader.runs(checks)
    assert "The target conforms" in report, report
    assert time.monotonic() - begun < 60


def test_countersign_takes_its_configuration(
    reader: Reader, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare, _, command = blocks("sh")[3].partition("\n\n")[2].strip().rpartition("\n")
    reader.runs(declare)
    assert command == ".venv/bin/python manage.py apply_config ledger.toml"
    monkeypatch.setenv("LEDGER_TOKEN", TOKENS["LEDGER_TOKEN"])
    call_command("apply_config", str(reader.folder / "ledger.toml"), verbosity=0)
    known = Target.objects.get(name="ledger")
    assert (known.internal, known.idempotency, known.key_retention_seconds) == (True, True, 86_400)
    assert known.operations.get().commit_path == "/write_off/commit"


@pytest.fixture
def ledger(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`ledger.py` can be imported, as the snippets do."""
    monkeypatch.chdir(reader.folder)
    monkeypatch.syspath_prepend(str(reader.folder))
    for name, text in TOKENS.items():
        monkeypatch.setenv(name, text)
    yield
    sys.modules.pop("ledger", None)


def snippet(naming: str, folder: Path) -> dict[str, Any]:
    """What the page's one snippet with this import defines."""
    [text] = [each for each in blocks("python") if f"countersign_target.{naming} import" in each]
    file = folder / f"snippet_{naming}.py"
    file.write_text(text)
    return runpy.run_path(str(file))


@pytest.mark.usefixtures("ledger")
def test_the_snippet_of_fastapi_serves(tmp_path: Path) -> None:
    app = snippet("starlette", tmp_path)["app"]
    assert isinstance(app, Starlette)
    client = TestClient(app)
    assert client.get("/ledger/health/live").json() == {"status": "ok"}
    assert client.get("/ledger/plans/none").status_code == 401


@pytest.mark.usefixtures("ledger")
def test_the_snippet_of_flask_serves(tmp_path: Path) -> None:
    app = snippet("flask", tmp_path)["app"]
    assert isinstance(app, Flask)
    assert app.test_client().get("/ledger/health/live").json == {"status": "ok"}


@pytest.mark.usefixtures("ledger")
def test_the_snippet_of_django_resolves(tmp_path: Path) -> None:
    [prefix] = snippet("django", tmp_path)["urlpatterns"]
    assert isinstance(prefix, URLResolver)
    assert prefix.resolve("ledger/write_off/commit").kwargs == {"path": "write_off/commit"}


def test_the_look_of_the_page_knows_its_words() -> None:
    [text] = [each for each in blocks("python") if "def look" in each]
    scope: dict[str, Any] = {}
    exec(compile(ast.parse(text), "look", "exec"), scope)
    found = type("Found", (), {"etag": '"1"', "last_change": ""})
    plan = type("Plan", (), {"inputs": {"id": 1}, "details": {"etag": '"1"'}, "plan_id": "plan_1"})
    with patch.dict(scope, {"api": type("Api", (), {"get": lambda number: found})}):
        assert isinstance(scope["look"](plan), countersign_target.SendAgain)


def test_every_name_of_the_package_is_there() -> None:
    names = countersign_target.__all__
    assert sorted(names, key=lambda name: (not name.isupper(), name)) == names
    assert all(hasattr(countersign_target, name) for name in names)


def test_the_pages_links_lead_to_something() -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", PAGE.read_text()):
        if not urlsplit(link).scheme:
            assert (PAGE.parent / link.partition("#")[0]).exists(), link
