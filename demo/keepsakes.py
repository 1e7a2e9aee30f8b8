"""The demo's passwords, tokens and API key: made once, kept in `secrets.json`, handed out."""

import json
import os
import secrets
from pathlib import Path
from typing import Any

AGENT = "support-agent"
OWNER = "dana"
PEOPLE = {
    "ada": ["reviewers"],
    "grace": ["reviewers", "leads"],
    "mona": ["managers"],
    "otto": ["operators"],
    "dana": ["reviewers"],
}


def write_private(path: Path, value: object) -> None:
    """Replace a JSON file in one step; nobody else may read it."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    fresh.unlink(missing_ok=True)
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(value, file, indent=2)
        file.write("\n")
    fresh.replace(path)


class Keepsakes:
    """The `demo` part of the home's `secrets.json`; the rest of that file is the app's."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.file = home / "secrets.json"
        everything = json.loads(self.file.read_text())
        self.kept: dict[str, Any] = everything.setdefault("demo", {})
        for name in ("billing_token", "billing_agent_token"):
            self.kept.setdefault(name, secrets.token_urlsafe(32))
        passwords = self.kept.setdefault("passwords", {})
        for person in PEOPLE:
            # Easy to copy from a terminal by double-click: letters and digits alone.
            passwords.setdefault(person, f"{person}-{secrets.token_hex(8)}")
        write_private(self.file, everything)

    def keep_api_key(self, key: str) -> None:
        """Remember the agent's key: the app shows it once."""
        self.kept["api_key"] = key
        everything = json.loads(self.file.read_text())
        write_private(self.file, everything | {"demo": self.kept})

    def environment(self) -> dict[str, str]:
        """What `apply_config` and billing read."""
        passwords = self.kept["passwords"].items()
        return {
            "BILLING_TOKEN": self.kept["billing_token"],
            "BILLING_AGENT_TOKEN": self.kept["billing_agent_token"],
            **{f"DEMO_PASSWORD_{person.upper()}": password for person, password in passwords},
        }

    def write_credentials(self, addresses: dict[str, str]) -> Path:
        """`credentials.json`, as scripts and the agent expect it; `addresses` are its URLs."""
        passwords = self.kept["passwords"]
        path = self.home / "credentials.json"
        write_private(
            path,
            {
                **{name: addresses[name] for name in ("base_url", "billing_url")},
                "people": {
                    name: {"password": passwords[name], "groups": groups}
                    for name, groups in PEOPLE.items()
                },
                "agents": {AGENT: {"api_key": self.kept["api_key"], "owner": OWNER}},
                "targets": {
                    "billing": {
                        "token": self.kept["billing_token"],
                        "agent_token": self.kept["billing_agent_token"],
                    }
                },
                **{name: addresses[name] for name in ("database_url", "redis_url")},
            },
        )
        return path
