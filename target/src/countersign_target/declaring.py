"""What Countersign has to know of a target, as the file that its operator applies."""

from __future__ import annotations

import json
from collections.abc import Iterable


def configuration(
    name: str,
    base_url: str,
    operations: Iterable[str],
    key_retention_seconds: int,
    *,
    internal: bool,
) -> str:
    """TOML for `manage.py apply_config`: addresses, and what the kit promises."""
    variable = "".join(each if each.isalnum() else "_" for each in name).upper()
    lines = [
        "[[targets]]",
        f"name = {_text(name)}",
        f"base_url = {_text(base_url)}",
        *(["internal = true   # loopback and private addresses are allowed"] if internal else []),
        f'credential = "env:{variable}_TOKEN"   # the app\'s: it commits',
        'plan_path = "/plans/{plan_id}"',
        "idempotency = true",
        f"key_retention_seconds = {key_retention_seconds}",
        "enforces_expiry = true",
        "consumed_plans_readable = true",
        'reviewers = ["reviewers"]   # the groups that see its plans',
    ]
    for each in operations:
        lines += [
            "",
            "[[targets.operations]]",
            f"name = {_text(each)}",
            f"dry_run_path = {_text(f'/{each}/dry_run')}",
            f"commit_path = {_text(f'/{each}/commit')}",
        ]
    return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    # A basic string of TOML is written as one of JSON.
    return json.dumps(text, ensure_ascii=False)
