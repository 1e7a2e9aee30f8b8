"""A target that moves loses its credential, and never moves under a plan (SEC-18, T-3)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from audit.actions import Action
from audit.models import Event
from plans import custody
from plans.models import Plan, Target
from plans.status import Status

MOVED = '[[targets]]\nname = "billing"\nbase_url = "http://127.0.0.1:9001"\n'
NEW_CREDENTIAL = 'credential = "env:BILLING_TOKEN"\n'
ONLY_CREDENTIAL = f'[[targets]]\nname = "billing"\n{NEW_CREDENTIAL}'

type Apply = Callable[[str], None]


@pytest.fixture
def apply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Apply:
    monkeypatch.setenv("BILLING_TOKEN", "a-new-token")

    def run(text: str) -> None:
        (tmp_path / "config.toml").write_text(text)
        call_command("apply_config", str(tmp_path / "config.toml"), verbosity=0)

    return run


def test_a_new_base_url_takes_the_credential_away(billing: Target, apply: Apply) -> None:
    apply(MOVED)
    billing.refresh_from_db()
    assert billing.base_url == "http://127.0.0.1:9001"
    assert billing.credential is None
    assert billing.connection_version == 2
    changed = Event.objects.get(action=Action.CONFIG_APPLIED).details["changed"]
    assert [key["key"] for key in changed] == ["base_url", "credential"]


def test_a_new_base_url_keeps_the_credential_given_with_it(billing: Target, apply: Apply) -> None:
    apply(MOVED + NEW_CREDENTIAL)
    billing.refresh_from_db()
    assert billing.credential is not None
    assert custody.decrypt(billing.credential) == b"a-new-token"
    assert billing.connection_version == 2


def test_another_spelling_of_the_same_base_url_changes_nothing(
    billing: Target, apply: Apply
) -> None:
    apply('[[targets]]\nname = "billing"\nbase_url = "HTTP://127.0.0.1:8001/"\n')
    billing.refresh_from_db()
    assert billing.credential is not None
    assert billing.connection_version == 1
    assert not Event.objects.exists()


def test_a_new_credential_closes_the_circuit(billing: Target, apply: Apply) -> None:
    billing.circuit_opened_at, billing.circuit_reason = timezone.now(), "401"
    billing.save()
    apply(ONLY_CREDENTIAL)
    billing.refresh_from_db()
    assert billing.circuit_reason == ""
    assert not Target.objects.filter(circuit_opened_at__isnull=False).exists()
    assert billing.connection_version == 2
    assert Event.objects.get(action=Action.CIRCUIT_CLOSED).target == "billing"


def test_the_same_credential_leaves_the_circuit_open(billing: Target, apply: Apply) -> None:
    billing.circuit_opened_at = timezone.now()
    billing.credential = custody.encrypt(b"a-new-token")
    billing.save()
    apply(ONLY_CREDENTIAL)
    billing.refresh_from_db()
    assert billing.circuit_opened_at is not None
    assert billing.connection_version == 1


@pytest.mark.parametrize(
    "status", [Status.APPROVED, Status.COMMITTING, Status.UNKNOWN, Status.UNRESOLVED]
)
@pytest.mark.parametrize("text", [MOVED, ONLY_CREDENTIAL])
def test_it_refuses_to_reconnect_under_a_plan_in_flight(
    billing: Target, make_plan: Callable[..., Plan], apply: Apply, status: str, text: str
) -> None:
    plan = make_plan(status)
    with pytest.raises(CommandError, match=f"plans in flight.*{plan.plan_id}"):
        apply(text)
    billing.refresh_from_db()
    assert billing.base_url == "http://127.0.0.1:8001"
    assert billing.connection_version == 1
    assert not Event.objects.exists()


@pytest.mark.parametrize("status", [Status.PENDING, Status.COMMITTED, Status.EXPIRED])
def test_other_plans_do_not_hold_the_connection(
    billing: Target, make_plan: Callable[..., Plan], apply: Apply, status: str
) -> None:
    make_plan(status)
    apply(MOVED)
    billing.refresh_from_db()
    assert billing.connection_version == 2


def test_other_settings_may_change_under_a_plan_in_flight(
    billing: Target, make_plan: Callable[..., Plan], apply: Apply
) -> None:
    make_plan(Status.UNKNOWN)
    apply('[[targets]]\nname = "billing"\nfresh_for_seconds = 7\n')
    billing.refresh_from_db()
    assert billing.fresh_for_seconds == 7
