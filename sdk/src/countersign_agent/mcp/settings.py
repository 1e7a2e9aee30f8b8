"""What the server is told by its environment. Faults name the variable and never its value."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypedDict, cast

from countersign_agent.secret import Secret
from countersign_agent.sqlite_store import SqliteStore
from countersign_agent.stores import JsonFileStore, Store
from countersign_agent.tools import Offer

type Environment = Mapping[str, str]

TASK_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}", re.ASCII)
SHORTEST_TOKEN: Final = 24
PORT: Final = 8790
LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


class SettingsFault(Exception):
    """The environment does not say what is needed, or says it wrongly."""


class Paths(TypedDict, total=False):
    """Where it has what, if not where `HttpTarget` looks."""

    dry_run_path: str
    commit_path: str
    plan_path: str


@dataclass(frozen=True, slots=True)
class KnownTarget:
    """A target that this process dry-runs itself, with a credential that cannot commit."""

    name: str
    base_url: str
    credential: Secret
    paths: Paths


@dataclass(frozen=True, slots=True)
class Settings:
    """For both transports."""

    url: str
    api_key: Secret
    state: Path
    task_id: str = ""
    """The one task of this server; empty: it takes up what is open, else begins one."""
    offers: tuple[Offer, ...] = ()
    targets: tuple[KnownTarget, ...] = ()

    @classmethod
    def read(cls, environment: Environment) -> Settings:
        """SettingsFault."""
        task_id = environment.get("COUNTERSIGN_TASK_ID", "")
        if task_id and not TASK_ID.fullmatch(task_id):
            raise SettingsFault(f"COUNTERSIGN_TASK_ID has to match {TASK_ID.pattern}.")
        offers, targets = _configuration(environment)
        return cls(
            _needed(environment, "COUNTERSIGN_URL"),
            secret(environment, "COUNTERSIGN_API_KEY"),
            Path(_needed(environment, "COUNTERSIGN_STATE")),
            task_id,
            offers,
            targets,
        )

    def store(self) -> Store:
        """One file: SQLite, which several servers may share, or JSON where it is named so."""
        self.state.parent.mkdir(parents=True, exist_ok=True)
        kind = JsonFileStore if self.state.suffix == ".json" else SqliteStore
        return kind(self.state)


@dataclass(frozen=True, slots=True)
class Listening:
    """Where the streamable HTTP server is, and whom it lets in."""

    host: str
    port: int
    token: Secret
    hosts: tuple[str, ...]
    origins: tuple[str, ...]

    @classmethod
    def read(cls, environment: Environment, host: str, port: int) -> Listening:
        """SettingsFault: also for an address that others reach without their hosts being named."""
        token = secret(environment, "COUNTERSIGN_MCP_TOKEN")
        if len(token.reveal()) < SHORTEST_TOKEN:
            raise SettingsFault(f"COUNTERSIGN_MCP_TOKEN needs {SHORTEST_TOKEN} characters or more.")
        named = _list(environment, "COUNTERSIGN_MCP_HOSTS")
        if host not in LOOPBACK and not named:
            raise SettingsFault(
                f"{host} can be reached by others: name the Host headers that are meant for this"
                " server in COUNTERSIGN_MCP_HOSTS."
            )
        own = tuple(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))
        return cls(host, port, token, named or own, _list(environment, "COUNTERSIGN_MCP_ORIGINS"))


def secret(environment: Environment, name: str) -> Secret:
    """`NAME`, or the text of the file that `NAME_FILE` names."""
    path = environment.get(f"{name}_FILE")
    if path is None:
        return Secret(_needed(environment, name, f"{name} or {name}_FILE"))
    if environment.get(name):
        raise SettingsFault(f"{name} and {name}_FILE are both set.")
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise SettingsFault(f"The file of {name}_FILE cannot be read.") from None
    if not text:
        raise SettingsFault(f"The file of {name}_FILE is empty.")
    return Secret(text)


def _needed(environment: Environment, name: str, names: str = "") -> str:
    value = environment.get(name, "").strip()
    if not value:
        raise SettingsFault(f"{names or name} is not set.")
    return value


def _list(environment: Environment, name: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in environment.get(name, "").split(",") if part.strip())


# ── The file of operations and targets ───────────────────────────────────────────────────────────
def _configuration(environment: Environment) -> tuple[tuple[Offer, ...], tuple[KnownTarget, ...]]:
    name = environment.get("COUNTERSIGN_OPERATIONS")
    if not name:
        return (), ()
    path = Path(name)
    try:
        members = tomllib.loads(path.read_text(encoding="utf-8"))
        _only(members, "operations", "targets")
        offers = tuple(_offer(each, path.parent) for each in members.get("operations", []))
        targets = tuple(
            _target(name, each, environment) for name, each in members.get("targets", {}).items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        # A KeyError is the name of a member; other messages may quote what they read.
        which = f" of {error}" if isinstance(error, KeyError) else ""
        fault = f"{path.name} cannot be used ({type(error).__name__}{which})."
        raise SettingsFault(fault) from None
    return offers, targets


def _offer(members: Mapping[str, Any], folder: Path) -> Offer:
    _only(members, "target", "operation", "description", "inputs_schema")
    schema: dict[str, Any] = {"type": "object"}
    if "inputs_schema" in members:
        schema = json.loads((folder / members["inputs_schema"]).read_text(encoding="utf-8"))
        schema.pop("$schema", None)
    return Offer(members["target"], members["operation"], members.get("description", ""), schema)


def _target(name: str, members: Mapping[str, Any], environment: Environment) -> KnownTarget:
    _only(members, "base_url", "credential", *Paths.__optional_keys__)
    kind, _, where = members["credential"].partition(":")
    if kind not in ("env", "file") or not where:
        raise SettingsFault(f"The credential of {name} is env:NAME or file:PATH.")
    variable = "COUNTERSIGN_TARGET_CREDENTIAL"
    given = {f"{variable}_FILE": where} if kind == "file" else {where: environment.get(where, "")}
    credential = secret(given, variable if kind == "file" else where)
    paths = {key: str(members[key]) for key in Paths.__optional_keys__ if key in members}
    return KnownTarget(name, members["base_url"], credential, cast("Paths", paths))


def _only(members: Mapping[str, Any], *known: str) -> None:
    if unknown := sorted(set(members) - set(known)):
        raise SettingsFault(f"Unknown: {', '.join(unknown)}. There is {', '.join(sorted(known))}.")
