"""A dry run's answer as the contract has it, and what is wrong with one that is not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from countersign_agent.instants import read_instant
from countersign_agent.secret import Secret

PLAN_ID: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._~-]{1,128}", re.ASCII)
PRINTABLE: Final = re.compile(r"[\x21-\x7e]+", re.ASCII)
LONGEST_FINGERPRINT: Final = 256
LONGEST_TOKEN: Final = 16_384
MOST_ACTIONS: Final = 20
SHORTEST_WINDOW: Final = timedelta(seconds=60)
LONGEST_WINDOW: Final = timedelta(hours=24)
MOST_COVERED: Final = 200
NAME: Final = re.compile(r"[\x21-\x7e]{1,200}", re.ASCII)
OBJECT: Final = re.compile(r"\S{1,300}")
ACTION_MEMBERS: Final = ("op", "target", "field", "from", "to")


@dataclass(frozen=True, slots=True)
class Planned:
    """One plan that the target made. `inputs`: the bytes that were sent."""

    plan_id: str
    token: Secret = field(repr=False)
    fingerprint: str
    expires_at: datetime
    inputs: bytes = field(repr=False)
    told: Mapping[str, Any] = field(repr=False)
    """The whole answer, without its token."""

    @property
    def before(self) -> list[tuple[Any, Any, Any]]:
        """What the plan takes the world to be: object, field and value before."""
        return [(each["target"], each["field"], each["from"]) for each in self.told["actions"]]


def take(body: dict[str, Any], inputs: bytes) -> Planned:
    """The plan in a dry run's answer that `faults` finds whole."""
    return Planned(
        plan_id=body["plan_id"],
        token=Secret(body["plan_token"]),
        fingerprint=body["input_fingerprint"],
        expires_at=read_instant(body["expires_at"]),
        inputs=inputs,
        told={name: value for name, value in body.items() if name != "plan_token"},
    )


def faults(body: Mapping[str, Any]) -> Iterator[str]:
    """Why this answer is no plan; nothing for one that the app takes. Names no value."""
    yield from _texts(body)
    yield from _instants(body)
    yield from _actions(body.get("actions"))
    covers = body.get("covers", [])
    if not isinstance(covers, list) or len(covers) > MOST_COVERED:
        yield f"`covers` is no list of at most {MOST_COVERED} objects"
    elif not all(_is_like(OBJECT, one) for one in covers):
        yield "`covers` names an object with spaces, or with more than 300 characters"


def window_faults(body: Mapping[str, Any], now: datetime) -> Iterator[str]:
    """Whether people have time to decide; for plans that were not asked to be short."""
    try:
        left = read_instant(body.get("expires_at")) - now
    except ValueError:
        return
    # Clocks differ by seconds: that is another check's finding.
    if left < SHORTEST_WINDOW - timedelta(seconds=5):
        yield f"the plan lives {left.total_seconds():.0f} s; people need 60 s at least"
    elif left > LONGEST_WINDOW + timedelta(seconds=5):
        yield "the plan lives longer than 24 hours"


def _texts(body: Mapping[str, Any]) -> Iterator[str]:
    plan_id, token, fingerprint = (
        body.get(name) for name in ("plan_id", "plan_token", "input_fingerprint")
    )
    if not (isinstance(plan_id, str) and PLAN_ID.fullmatch(plan_id)):
        yield "`plan_id` is not 1 to 128 characters of A-Z a-z 0-9 . _ ~ -"
    if not (isinstance(token, str) and PRINTABLE.fullmatch(token) and len(token) <= LONGEST_TOKEN):
        yield "`plan_token` is not a string of printable ASCII without spaces"
    if not (
        isinstance(fingerprint, str)
        and PRINTABLE.fullmatch(fingerprint)
        and len(fingerprint) <= LONGEST_FINGERPRINT
    ):
        yield "`input_fingerprint` is not a string of 1 to 256 printable ASCII characters"


def _instants(body: Mapping[str, Any]) -> Iterator[str]:
    for name in ("expires_at", "created_at"):
        if name == "created_at" and name not in body:
            continue
        try:
            read_instant(body.get(name))
        except ValueError:
            yield f"`{name}` is no RFC 3339 time with an offset, like 2026-01-31T09:31:12.040Z"


def _actions(actions: Any) -> Iterator[str]:
    if not isinstance(actions, list) or not 1 <= len(actions) <= MOST_ACTIONS:
        yield f"`actions` is no list of 1 to {MOST_ACTIONS} actions"
        return
    for number, action in enumerate(actions):
        if not isinstance(action, dict):
            yield f"`actions/{number}` is no object"
            continue
        missing = [name for name in ACTION_MEMBERS if name not in action]
        if missing:
            yield f"`actions/{number}` lacks {', '.join(missing)}"
        for name, name_like in (("op", NAME), ("field", NAME), ("target", OBJECT)):
            if name in action and not _is_like(name_like, action[name]):
                yield f"`actions/{number}/{name}` is no short name without spaces"
    if any(action in actions[:place] for place, action in enumerate(actions)):
        yield "`actions` holds one action twice"


def _is_like(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None
