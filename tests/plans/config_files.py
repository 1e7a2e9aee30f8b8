"""A file that configures everything, and a command that applies it or refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.core.management import CommandError

FULL = """
[[people]]
username = "ada"
groups = ["reviewers"]
password = "env:ADA_PASSWORD"

[[people]]
username = "dana"
groups = ["reviewers", "leads"]

[[people]]
username = "otto"
groups = ["operators"]

[[targets]]
name = "billing"
base_url = "http://127.0.0.1:8001"
internal = true
credential = "file:billing.token"
plan_path = "/plans/{plan_id}"
allow_unverified = false
idempotency = true
key_style = "bare"
key_retention_seconds = 86400
enforces_expiry = true
consumed_plans_readable = true
connect_timeout_seconds = 5
read_timeout_seconds = 30
total_timeout_seconds = 45
retry_delays_seconds = [0.5, 3, 9, 20]
unknown_deadline_seconds = 900
min_window_seconds = 60
max_window_seconds = 86400
fresh_for_seconds = 120
reviewers = ["reviewers"]

[[targets.operations]]
name = "refund"
title = "Refund {delta.refunded_cents:money:USD} on {object}"
asked = "{inputs.amount_cents:money:USD}"
reversible = false
formats = { refunded_cents = "money:USD" }
dry_run_path = "/refund/dry_run"
commit_path = "/refund/commit"
replan = "server"
risk = "high"
inputs_schema = "refund.inputs.json"
result_schema = "refund.result.json"
ops = ["update"]
fields = ["refunded_cents", "status"]

[[agents]]
name = "support-agent"
owner = "dana"
pending_cap = 50
rate_limit_per_minute = 600
"""
type Apply = Callable[..., str]


def refusal(apply: Apply, text: str) -> str:
    with pytest.raises(CommandError) as caught:
        apply(text)
    return str(caught.value)
