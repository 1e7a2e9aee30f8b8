"""What the group of operators may do in the admin: configure, and read the rest."""

from __future__ import annotations

from typing import Final

from django.contrib.auth.models import Group, Permission

from plans.configuration.changes import KeyChange

OPERATORS: Final = "operators"

_CONFIGURES: Final = (
    "plans.target",
    "plans.operation",
    "plans.agent",
    "approvals.policy",
    "auth.user",
    "auth.group",
)
_READS: Final = (
    "plans.apikey",
    "plans.plan",
    "plans.evidence",
    "plans.intent",
    "plans.attempt",
    "plans.replan",
    "approvals.decision",
    "audit.event",
    "audit.era",
)


def _of(model: str, verb: str) -> str:
    app, _, name = model.partition(".")
    return f"{app}.{verb}_{name}"


# Keys are made at the terminal, where they are shown once; here they are only revoked.
OPERATOR_PERMISSIONS: Final = frozenset(
    {
        *(_of(model, verb) for model in _CONFIGURES for verb in ("view", "add", "change")),
        *(_of(model, "view") for model in _READS),
        "plans.change_apikey",
    }
)


def grant_operators() -> list[KeyChange]:
    """Give the group what it lacks; other permissions that somebody gave it stay."""
    group, _ = Group.objects.get_or_create(name=OPERATORS)
    held = set(_names(group))
    missing = sorted(OPERATOR_PERMISSIONS - held)
    for name in missing:
        app, codename = name.split(".")
        group.permissions.add(
            Permission.objects.get(content_type__app_label=app, codename=codename)
        )
    return [KeyChange("permissions", words=f"{len(missing)} added")] if missing else []


def _names(group: Group) -> list[str]:
    pairs = group.permissions.values_list("content_type__app_label", "codename")
    return [f"{app}.{codename}" for app, codename in pairs]
