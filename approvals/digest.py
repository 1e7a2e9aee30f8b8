"""What a person decided on, as one hash: the page carries it, the decision repeats it (B-2).

Nothing volatile is inside: while the world stands still, so does the digest.
"""

from __future__ import annotations

from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from approvals.titles import format_of
from plans.canonical import inputs_hash, jcs, sha256_hex
from plans.models import Plan
from plans.strict_json import SAFE_INTEGER, JsonObject, JsonValue

VERSION: Final = b"v1\n"
_DEFAULT_PORTS: Final = {"https": 443, "http": 80}


class Shown(Protocol):
    """The parts of an assessment that a person sees."""

    @property
    def title(self) -> str: ...
    @property
    def risk(self) -> str: ...
    @property
    def policy_version(self) -> str: ...
    @property
    def approvals_required(self) -> int: ...


def shown_digest(plan: Plan, shown: Shown) -> str:
    """SHA-256 in hex over `v1\\n` and the RFC 8785 text of what is shown (B-2)."""
    return sha256_hex(VERSION + jcs(what_is_shown(plan, shown)))


def what_is_shown(plan: Plan, shown: Shown) -> JsonObject:
    """The hashed members, in language-neutral form: raw values with the name of their format."""
    return {
        "target": {"id": plan.target.name, "origin": origin(plan.target.base_url)},
        "operation": plan.operation.name,
        "plan_id": plan.plan_id,
        "input_fingerprint": plan.input_fingerprint,
        "inputs": inputs_hash(bytes(plan.inputs)),
        "expires_at": plan.expires_at_text,
        "verified": plan.verified,
        "title": shown.title,
        "actions": [_action(plan, action) for action in plan.actions],
        "risk": shown.risk,
        "policy_version": shown.policy_version,
        "approvals_required": shown.approvals_required,
    }


def origin(base_url: str) -> str:
    """Scheme, host and port (RFC 6454), the host in punycode: `https://billing.example:443`."""
    parts = urlsplit(base_url)
    host = (parts.hostname or "").encode("idna").decode() if parts.hostname else ""
    port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
    return f"{parts.scheme}://{host}:{port}"


def _action(plan: Plan, action: dict[str, Any]) -> JsonObject:
    return {
        **{name: neutral(value) for name, value in action.items()},
        "format": format_of(plan.operation, str(action.get("field", ""))),
    }


def neutral(value: JsonValue) -> JsonValue:
    """A value that RFC 8785 can write: 1e21 comes back from jsonb as an integer, not a double."""
    if isinstance(value, int) and abs(value) > SAFE_INTEGER:
        return float(value)
    if isinstance(value, list):
        return [neutral(item) for item in value]
    if isinstance(value, dict):
        return {name: neutral(item) for name, item in value.items()}
    return value
