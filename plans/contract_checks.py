"""The contract's checks, made by the app: the SDK's, over the app's own gateway.

They are in the SDK because the owner of a target runs them without this product. Here every call
passes the gateway's address checks and deadlines, as every other call to a target does (SEC-15).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from countersign_agent import exchanges as theirs
from countersign_agent.conformance import Allowance, Call, Subject, Who, check_target
from countersign_agent.secret import Secret
from plans import exchanges as ours
from plans import gateway
from plans.contract_runs import CALL_SECONDS, RUN_SECONDS
from plans.models import ContractRun, Operation, Target
from plans.reading import endpoint, target_secrets


def check(run: ContractRun, wishes: Sequence[bytes]) -> dict[str, Any]:
    """The report, as stored. `wishes`: inputs to make plans with; without any it says so."""
    target = run.target
    allowance = Allowance(commits=False, wait_seconds=0.1, run_seconds=RUN_SECONDS)
    subject = _subject(run.operation, wishes)
    return check_target(target.name, subject, GatewayWire(target), allowance).as_json()


def _subject(operation: Operation, wishes: Sequence[bytes]) -> Subject:
    target = operation.target
    return Subject(
        operation=operation.name,
        inputs=list(wishes),
        dry_run_path=operation.dry_run_path,
        commit_path=operation.commit_path,
        plan_path=target.plan_path,
        key_style="sf-string" if target.key_style == Target.KeyStyle.SF_STRING else "bare",
        key_retention_seconds=target.key_retention_seconds,
    )


class GatewayWire:
    """Calls to one target as the app makes them. There is no agent's credential here."""

    has_agent = False

    def __init__(self, target: Target) -> None:
        self.seconds = min(CALL_SECONDS, target.total_timeout_seconds)
        told = endpoint(target)
        self._app = replace(told, total_timeout=self.seconds)
        self._nobody = replace(self._app, credential=None)
        self.secrets = [Secret(each) for each in target_secrets(target)]

    def send(self, call: Call) -> theirs.Exchange:
        """One call. Nobody's goes without a credential; what came back is not noted as health.

        The checks provoke refusals, and a target must not look ill for being tested.
        """
        to = self._nobody if call.who is Who.NOBODY else self._app
        request = ours.Call(call.method, call.path, call.body, call.headers)
        exchange = gateway.exchange(to, request)
        match exchange:
            case ours.Answer(status=status, headers=headers, body=body):
                return theirs.Answer(status, body, headers)
            case ours.NotSent(reason=reason):
                return theirs.NotSent(cast(str, reason))
            case ours.NoAnswer(reason=reason):
                return theirs.NoAnswer(reason)
