"""Which tables and keys a configuration file may hold (7-interfaces)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from plans.configuration import json_schemas, values
from plans.configuration.values import Converter
from plans.models import Operation, Target


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of row: its table in the file and the converter of every key."""

    table: str
    noun: str
    named_by: str
    keys: Mapping[str, Converter]
    # Needed to make a new row; an existing one keeps what the file does not name.
    required: tuple[str, ...] = ()


_SECONDS: Final = values.seconds()
_COUNT: Final = values.whole()
_DAY: Final = 86_400

PERSON: Final = Kind(
    table="people",
    noun="person",
    named_by="username",
    keys={
        "username": values.username,
        "groups": values.words(150),
        "password": values.password,
        "email": values.email,
    },
)
OPERATION: Final = Kind(
    table="operations",
    noun="operation",
    named_by="name",
    keys={
        "name": values.name,
        "title": values.text(300),
        "asked": values.text(300),
        "reversible": values.boolean,
        "formats": values.formats,
        "dry_run_path": values.path,
        "commit_path": values.path,
        "replan": values.one_of(Operation.ReplanMode.values),
        "risk": values.one_of(Operation.Risk.values),
        "inputs_schema": json_schemas.read,
        "result_schema": json_schemas.read,
        "ops": values.words(100),
        "fields": values.words(200),
    },
    required=("dry_run_path", "commit_path"),
)
TARGET: Final = Kind(
    table="targets",
    noun="target",
    named_by="name",
    keys={
        "name": values.name,
        "base_url": values.text(500),
        "internal": values.boolean,
        "credential": values.credential,
        "plan_path": values.plan_path,
        "allow_unverified": values.boolean,
        "idempotency": values.boolean,
        "key_style": values.one_of(Target.KeyStyle.values),
        "key_retention_seconds": _COUNT,
        "enforces_expiry": values.boolean,
        "consumed_plans_readable": values.boolean,
        "connect_timeout_seconds": _SECONDS,
        "read_timeout_seconds": _SECONDS,
        "total_timeout_seconds": _SECONDS,
        "retry_delays_seconds": values.delays,
        "unknown_deadline_seconds": values.whole(1, 30 * _DAY),
        "min_window_seconds": _COUNT,
        "max_window_seconds": values.whole(1),
        "fresh_for_seconds": _COUNT,
        "reviewers": values.words(150),
    },
    required=("base_url",),
)
AGENT: Final = Kind(
    table="agents",
    noun="agent",
    named_by="name",
    keys={
        "name": values.name,
        "owner": values.username,
        "pending_cap": _COUNT,
        "rate_limit_per_minute": _COUNT,
    },
    required=("owner",),
)
# Tables inside a row of the kind.
NESTED: Final[dict[str, Kind]] = {TARGET.table: OPERATION}
_top: Final = [PERSON, TARGET, AGENT]


def known() -> tuple[Kind, ...]:
    """The kinds that stand at the top of a file, in the order in which they are applied."""
    return tuple(_top)


def learn(kind: Kind) -> None:
    """One more kind, of an app that imports this one."""
    _top.append(kind)
