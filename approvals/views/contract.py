"""Does a target keep its side of the contract? The last report, and a button for a new one."""

from __future__ import annotations

import shlex
from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_GET, require_POST

from approvals.access import Role, in_group
from approvals.views import PersonRequest, signed_in
from audit import actors
from plans import contract_runs, tasks
from plans.errors import NotAllowed
from plans.models import ContractRun, Operation, Target

DRY_RUN_PATH: Final = "/{operation}/dry_run"
COMMIT_PATH: Final = "/{operation}/commit"
PLAN_PATH: Final = "/plans/{plan_id}"
NOTHING_TO_PLAN_WITH: Final = gettext_noop(
    "There are no inputs to test {operation} with: let an agent ask for it once, or give the "
    "operation's inputs_schema an example (“examples”)."
)


@signed_in
@require_GET
def contract(request: PersonRequest, name: str) -> HttpResponse:
    """The newest run; htmx gets the report alone, and asks again while it is being made."""
    target = _target(request, name)
    run = contract_runs.latest([target.pk]).get(target.pk)
    operations = list(target.operations.order_by("name"))
    context: dict[str, Any] = {"target": target, "run": run, "operations": operations}
    context |= _parts(run)
    operation = run.operation if run else next(iter(operations), None)
    context["command"] = operation and command(operation)
    page = "approvals/contract.html"
    alone = request.htmx and not request.htmx.history_restore_request
    return render(request, f"{page}#report" if alone else page, context)


@signed_in
@require_POST
def contract_test(request: PersonRequest, name: str) -> HttpResponse:
    """Queue a run of the checks that need no commit; the target is asked outside of this."""
    target = _target(request, name)
    wanted = request.POST.get("operation", "")
    # Compared here: a text that PostgreSQL cannot hold is nobody's name.
    operations = list(target.operations.select_related("target").order_by("name"))
    operation = next((one for one in operations if one.name == wanted), None)
    if operation is None:
        messages.error(request, _("Choose one of the target's operations."))
    elif not contract_runs.wishes(operation):
        messages.error(request, _(NOTHING_TO_PLAN_WITH).format(operation=operation.name))
    else:
        run = contract_runs.ask(operation, actors.person(request.user))
        tasks.ring(tasks.check_contract, run.pk)
    return redirect("contract", target.name)


def command(operation: Operation) -> str:
    """What checks everything, commits included, at a terminal. It holds no secret."""
    target = operation.target
    words = ["countersign-check-target", target.base_url, "--operation", operation.name]
    words += ["--inputs", "inputs.json"]
    for option, usual, path in (
        ("--dry-run-path", DRY_RUN_PATH, operation.dry_run_path),
        ("--commit-path", COMMIT_PATH, operation.commit_path),
        ("--plan-path", PLAN_PATH, target.plan_path),
    ):
        if path not in ("", usual, usual.replace("{operation}", operation.name)):
            words += [option, path]
    if target.key_style != Target.KeyStyle.BARE:
        words += ["--key-style", target.key_style]
    if target.key_retention_seconds:
        words += ["--key-retention", str(target.key_retention_seconds)]
    return shlex.join([*words, "--commit"])


def _parts(run: ContractRun | None) -> dict[str, Any]:
    """The checks by what came of them; a report that is not there has none."""
    checks = run.report["checks"] if run and run.report else []
    names = ("wrong", "look", "ok")
    parts = {name: [one for one in checks if one["verdict"] == name] for name in names}
    lacking: dict[str, list[str]] = {}
    for one in checks:
        if one["verdict"] == "not_run":
            lacking.setdefault(one["not_run"], []).append(one["title"])
    return {**parts, "lacking": lacking.items()}


def _target(request: PersonRequest, name: str) -> Target:
    if not in_group(request.user, Role.OPERATORS):
        raise NotAllowed("Settings are the operators' page.")
    return get_object_or_404(Target, name=name)
