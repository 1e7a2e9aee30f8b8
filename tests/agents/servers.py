"""`countersign-agent mcp` as its users run it, with somebody who writes down every message."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import httpx2
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from config.servers import free_port
from demo.credentials import AGENT, TARGET
from tests.agents.overheard import tapped
from tests.journeys.product import ROOT, Product, eventually

HERE: Final = Path(__file__).parent
COMMAND: Final = (sys.executable, "-m", "countersign_agent", "mcp")
TOKEN: Final = "a-bearer-token-of-this-test-alone"
OPERATIONS: Final = """
[[operations]]
target = "billing"
operation = "refund"
description = "pays back a part or all of an invoice, in cents"
inputs_schema = "{schema}"
"""
OWN_DRY_RUNS: Final = """
[targets.billing]
base_url = "{url}"
credential = "env:BILLING_TOKEN"
"""


class Surroundings:
    """Environment and files of one agent's MCP server."""

    def __init__(self, folder: Path, product: Product, *, dry_runs_at: str = "") -> None:
        self.folder = folder
        self.heard = folder / "heard"
        self.errors = folder / "errors"
        raw = product.credentials.raw
        (folder / "key").write_text(f"{raw['agents'][AGENT]['api_key']}\n")
        file = folder / "operations.toml"
        text = OPERATIONS.format(schema=ROOT / "demo" / "refund.inputs.json")
        if dry_runs_at:
            text += OWN_DRY_RUNS.format(url=dry_runs_at)
        file.write_text(text)
        self.environment = {
            "PYTHONPATH": str(ROOT / "sdk" / "src"),
            "COUNTERSIGN_URL": product.credentials.base_url,
            "COUNTERSIGN_API_KEY_FILE": str(folder / "key"),
            "COUNTERSIGN_STATE": str(folder / "state.sqlite"),
            "COUNTERSIGN_OPERATIONS": str(file),
            "COUNTERSIGN_MCP_TOKEN": TOKEN,
            "BILLING_TOKEN": raw["targets"][TARGET]["agent_token"],
        }

    def everything(self) -> str:
        """What went over the wire in both directions, and what the server printed."""
        return "".join(p.read_text() for p in (self.heard, self.errors) if p.exists())


@asynccontextmanager
async def over_stdio(around: Surroundings, **options: Any) -> AsyncIterator[Client]:
    """A server of its own for this client, as desktop programs start it."""
    arguments = [str(HERE / "overheard.py"), str(around.heard), *COMMAND]
    parameters = StdioServerParameters(
        command=sys.executable, args=arguments, env=around.environment
    )
    with around.errors.open("a") as errors:
        async with Client(stdio_client(parameters, errlog=errors), **options) as client:
            yield client


@contextmanager
def http_server(around: Surroundings) -> Iterator[int]:
    """A server that listens; its port, behind a tap."""
    port = free_port()
    with tapped(port, around.heard) as tap, around.errors.open("a") as errors:
        hosts = {"COUNTERSIGN_MCP_HOSTS": f"127.0.0.1:{tap.port},127.0.0.1:{port}"}
        command = [*COMMAND, "--http", "--port", str(port)]
        environment = os.environ | around.environment | hosts
        with subprocess.Popen(command, env=environment, stderr=errors) as process:
            try:
                assert eventually(lambda: _answers(port)), around.everything()
                yield tap.port
            finally:
                process.terminate()
            assert process.wait(30) in (0, -15)


@asynccontextmanager
async def over_http(port: int, *, task: str = "", **options: Any) -> AsyncIterator[Client]:
    """A client that knows the token, and perhaps names its task."""
    headers = {"Authorization": f"Bearer {TOKEN}"} | ({"Countersign-Task": task} if task else {})
    async with httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as inner:
        transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=inner)
        async with Client(transport, **options) as client:
            yield client


def _answers(port: int) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.post(f"http://127.0.0.1:{port}/mcp", trust_env=False).status_code == 401
    time.sleep(0.2)
    return False
