"""docs/mcp.md and the examples' page are true: what they show is run."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters, stdio_client

from countersign_agent.mcp.server import MCP_TOOLS
from countersign_agent.mcp.settings import Settings
from countersign_agent.tools import for_mcp
from demo.credentials import AGENT, TARGET
from tests.agents.servers import Surroundings, http_server, over_http
from tests.architecture.test_source import ROOT
from tests.journeys.people import Billing
from tests.journeys.product import PATIENCE, Product
from tests.journeys.wire import Wire

PAGE = ROOT / "docs" / "mcp.md"
EXAMPLES = ROOT / "sdk" / "examples" / "README.md"
PROJECT = tomllib.loads((ROOT / "sdk" / "pyproject.toml").read_text())["project"]


def blocks(language: str, path: Path = PAGE) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL)


def table() -> str:
    """The tools as the page lists them."""
    rows = ["| tool | arguments | hints |", "|---|---|---|"]
    for made in for_mcp(MCP_TOOLS):
        schema, hints = made["inputSchema"], made["annotations"]
        names = [f"{n}" if n in schema["required"] else f"{n}?" for n in schema["properties"]]
        said = ["read-only"] if hints["readOnlyHint"] else ["idempotent"]
        said += ["destructive"] if hints["destructiveHint"] else []
        rows.append(f"| `{made['name']}` | `{', '.join(names)}` | {', '.join(said)} |")
    return "\n".join(rows)


def test_the_table_of_tools_is_the_tools() -> None:
    found = re.search(r"<!-- tools -->\n(.*?)<!-- /tools -->", PAGE.read_text(), re.DOTALL)
    assert found is not None
    assert found[1].strip() == table()


def test_every_variable_is_explained() -> None:
    sources = (ROOT / "sdk/src/countersign_agent/mcp").glob("*.py")
    used = set(re.findall(r"\bCOUNTERSIGN_[A-Z_]+", "".join(p.read_text() for p in sources)))
    told = set(re.findall(r"`(COUNTERSIGN_[A-Z_]+)`", PAGE.read_text()))
    assert {name.removesuffix("_FILE") for name in told} == used - {"COUNTERSIGN_TARGET_CREDENTIAL"}


def test_the_command_and_the_extra_are_there() -> None:
    assert PROJECT["scripts"].keys() == {"countersign-agent", "countersign-check-target"}
    module, _, name = PROJECT["scripts"]["countersign-agent"].partition(":")
    assert callable(getattr(importlib.import_module(module), name))
    pinned = (ROOT / "requirements-dev.in").read_text().splitlines()
    assert set(PROJECT["optional-dependencies"]["mcp"]) <= set(pinned)
    (line,) = re.findall(r"pip install (.*)", EXAMPLES.read_text())
    assert {re.split(r"[~=<>]", each)[0] for each in pinned} >= set(line.split())


def test_programs_start_it_as_they_are_told_to(
    tmp_path: Path, product: Product, wire: Wire
) -> None:
    text, _ = blocks("json")
    told = json.loads(text)["mcpServers"]["countersign"]
    assert told["command"] == "countersign-agent"
    real = Surroundings(tmp_path, product).environment
    environment = {name: real[name] for name in told["env"]} | {"PYTHONPATH": real["PYTHONPATH"]}

    async def story() -> list[str]:
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-m", "countersign_agent", *told["args"]],
            env=environment,
        )
        async with Client(stdio_client(parameters)) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    assert asyncio.run(story()) == [tool.name for tool in MCP_TOOLS]


def test_the_demos_settings_are_read(tmp_path: Path) -> None:
    _, text = blocks("json")
    told = json.loads(text.replace("/path/to/countersign/.demo", str(tmp_path)))
    server = told["mcpServers"]["countersign"]
    (tmp_path / "agent.key").write_text("cs_x_y\n")
    here = {k: v.replace("/path/to/countersign", str(ROOT)) for k, v in server["env"].items()}
    read = Settings.read(here)
    assert read.api_key.reveal() == "cs_x_y"
    (offer,) = read.offers
    assert (offer.target, offer.operation, read.targets) == (TARGET, "refund", ())
    assert offer.inputs["required"] == ["invoice_id", "amount_cents"]


def test_over_http_it_is_where_the_page_says(tmp_path: Path, product: Product, wire: Wire) -> None:
    *_, text = blocks("sh")
    assert text.splitlines()[1] == "countersign-agent mcp --http --port 8790"

    async def story(port: int) -> None:
        async with over_http(port) as client:
            assert client.server_info is not None
            assert client.server_info.name == "countersign"

    with http_server(Surroundings(tmp_path, product)) as port:
        asyncio.run(story(port))


def test_the_file_of_operations_is_read(tmp_path: Path) -> None:
    (text,) = blocks("toml")
    (tmp_path / "operations.toml").write_text(text)
    schema = (ROOT / "demo" / "refund.inputs.json").read_text()
    (tmp_path / "refund.inputs.json").write_text(schema)
    read = Settings.read(
        {
            "COUNTERSIGN_URL": "http://127.0.0.1:8000",
            "COUNTERSIGN_API_KEY": "cs_x_y",
            "COUNTERSIGN_STATE": str(tmp_path / "state"),
            "COUNTERSIGN_OPERATIONS": str(tmp_path / "operations.toml"),
            "BILLING_TOKEN": "a-token",
        }
    )
    (offer,), (target,) = read.offers, read.targets
    assert (offer.operation, target.credential.reveal()) == ("refund", "a-token")
    assert offer.inputs["required"] == ["invoice_id", "amount_cents"]


def shell(text: str, product: Product, folder: Path, **environment: str) -> str:
    done = subprocess.run(
        text,
        shell=True,
        cwd=folder,
        env=product.environment | environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_program_of_the_page_runs(tmp_path: Path, product: Product, billing: Billing) -> None:
    (text,) = blocks("python")
    program = text.replace('"4471"', f'"{billing.new_invoice()}"')
    (tmp_path / "program.py").write_text(program)
    said = shell(
        f"{sys.executable} program.py",
        product,
        tmp_path,
        PYTHONPATH=str(ROOT / "sdk" / "src"),
        COUNTERSIGN_URL=product.credentials.base_url,
        COUNTERSIGN_API_KEY=product.credentials.raw["agents"][AGENT]["api_key"],
    )
    answer: dict[str, Any] = json.loads(said)
    assert (answer["next_action"], answer["plan"]["target"]) == ("wait", TARGET)


def test_the_example_is_run_as_its_page_says(
    tmp_path: Path, product: Product, billing: Billing
) -> None:
    (text,) = blocks("sh", EXAMPLES)
    _, commands = text.split("\n", 1)
    commands = commands.replace("http://127.0.0.1:8000", product.credentials.base_url)
    commands = commands.replace(".demo/credentials.json", f"{product.home}/credentials.json")
    commands = commands.replace(" 4471", f" {billing.new_invoice()}")
    for name in ("sdk", ".venv"):
        os.symlink(ROOT / name, tmp_path / name)
    assert "waits for a person: http" in shell(commands, product, tmp_path)
    assert (tmp_path / "kept" / "state.json").exists()


def test_the_page_is_linked() -> None:
    for page in ("README.md", "docs/api.md", "sdk/README.md"):
        assert "mcp.md" in (ROOT / page).read_text(), page
