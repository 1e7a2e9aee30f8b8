"""What `.demo/credentials.json` says: where the demo runs, and how to get in."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parents[1]
AGENT, TARGET = "support-agent", "billing"


@dataclass(frozen=True)
class Credentials:
    """The running demo's addresses and secrets; `repr` shows only the addresses."""

    base_url: str
    billing_url: str
    raw: dict[str, Any] = field(repr=False)

    @classmethod
    def load(cls) -> "Credentials":
        """Read `DEMO_CREDENTIALS`, else `credentials.json` in `COUNTERSIGN_HOME` or `.demo/`.

        FileNotFoundError when no demo was ever started here.
        """
        home = Path(os.environ.get("COUNTERSIGN_HOME") or ROOT / ".demo")
        path = Path(os.environ.get("DEMO_CREDENTIALS") or home / "credentials.json")
        raw = json.loads(path.read_text())
        return cls(raw["base_url"], raw["billing_url"], raw)

    @property
    def database_url(self) -> str:
        """The app's database."""
        return str(self.raw["database_url"])

    def password(self, person: str) -> str:
        """What `person` signs in with."""
        return str(self.raw["people"][person]["password"])

    def as_agent(self) -> httpx.Client:
        """The app's REST API, as the support agent; long polls take up to 30 s."""
        key = self.raw["agents"][AGENT]["api_key"]
        return _client(f"{self.base_url}/api/v1", key, timeout=45)

    def billing_as_agent(self) -> httpx.Client:
        """Billing, to dry-run and read."""
        return _client(self.billing_url, self.raw["targets"][TARGET]["agent_token"], timeout=15)

    def billing_as_app(self) -> httpx.Client:
        """Billing with the app's token: to move the world and to read the ledger."""
        return _client(self.billing_url, self.raw["targets"][TARGET]["token"], timeout=15)


def _client(base_url: str, token: str, timeout: float) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token}"}
    # A proxy of the environment has no business between two servers of one machine.
    return httpx.Client(base_url=base_url, headers=headers, timeout=timeout, trust_env=False)
