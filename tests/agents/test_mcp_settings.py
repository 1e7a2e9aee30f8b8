"""Who is let in by the MCP server, and what it needs to be told before it starts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from countersign_agent.mcp.cli import main
from tests.agents.servers import TOKEN, Surroundings, http_server
from tests.architecture.test_source import files, hits
from tests.journeys.product import Product
from tests.journeys.wire import Wire

# ── Who gets in ─────────────────────────────────────────────────────────────────────────────
GOOD = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def listening(
    tmp_path_factory: pytest.TempPathFactory, product: Product, wire: Wire
) -> Iterator[int]:
    with http_server(Surroundings(tmp_path_factory.mktemp("listening"), product)) as port:
        yield port


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer"}, 401),
        ({"Authorization": f"Bearer {TOKEN}x"}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Host": "attacker.example"}, 421),
        ({"Host": "127.0.0.1.attacker.example:80"}, 421),
        ({"Origin": "https://attacker.example"}, 403),
        ({"Origin": "null"}, 403),
        ({}, 200),
    ],
)
def test_only_who_has_the_token_and_means_this_host_gets_in(
    listening: int, headers: dict[str, str], status: int
) -> None:
    """A page that a browser was led to (DNS rebinding) has neither."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
    answer = httpx.post(
        f"http://127.0.0.1:{listening}/mcp", json=body, headers=GOOD | headers, trust_env=False
    )
    assert answer.status_code == status
    assert TOKEN not in answer.text


INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


# ── Settings ────────────────────────────────────────────────────────────────────────────────
WHOLE = {
    "COUNTERSIGN_URL": "http://127.0.0.1:9",
    "COUNTERSIGN_API_KEY": "cs_key_that_is_secret",
    "COUNTERSIGN_STATE": "state.sqlite",
    "COUNTERSIGN_MCP_TOKEN": TOKEN,
}


@pytest.mark.parametrize(
    ("changed", "arguments", "words"),
    [
        ({"COUNTERSIGN_URL": ""}, [], "COUNTERSIGN_URL is not set"),
        ({"COUNTERSIGN_URL": "ftp://x"}, [], "the address of a server is http(s)"),
        ({"COUNTERSIGN_API_KEY": ""}, [], "COUNTERSIGN_API_KEY or COUNTERSIGN_API_KEY_FILE"),
        ({"COUNTERSIGN_API_KEY_FILE": "missing"}, [], "are both set"),
        ({"COUNTERSIGN_API_KEY": "", "COUNTERSIGN_API_KEY_FILE": "missing"}, [], "be read"),
        ({"COUNTERSIGN_STATE": ""}, [], "COUNTERSIGN_STATE is not set"),
        ({"COUNTERSIGN_STATE": "."}, [], "COUNTERSIGN_STATE cannot be used"),
        ({"COUNTERSIGN_TASK_ID": "no task"}, [], "COUNTERSIGN_TASK_ID has to match"),
        ({"COUNTERSIGN_OPERATIONS": "missing.toml"}, [], "missing.toml cannot be used"),
        ({"COUNTERSIGN_OPERATIONS": "bad.toml"}, [], "Unknown: secrets"),
        ({"COUNTERSIGN_MCP_TOKEN": ""}, ["--http"], "COUNTERSIGN_MCP_TOKEN"),
        ({"COUNTERSIGN_MCP_TOKEN": "short"}, ["--http"], "needs 24 characters"),
        ({}, ["--http", "--host", "0.0.0.0"], "name the Host headers"),
    ],
)
def test_what_it_is_told_wrongly_is_named_and_never_repeated(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    changed: dict[str, str],
    arguments: list[str],
    words: str,
) -> None:
    (tmp_path / "bad.toml").write_text("secrets = 1\n")
    monkeypatch.chdir(tmp_path)
    for name, value in (WHOLE | changed).items():
        monkeypatch.setenv(name, value)
    assert main(["mcp", *arguments]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert "secret" not in said.err.replace("Unknown: secrets", "")
    assert said.out == ""


def test_the_source_asks_no_client_for_a_decision() -> None:
    paths = list(files("sdk/src/countersign_agent/mcp/*.py"))
    assert paths
    assert hits(r"\belicit\w*\(|create_message|input_required|decision/", paths) == []
