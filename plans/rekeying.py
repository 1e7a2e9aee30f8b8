"""Encrypting anew, so that an old key can be taken out of `COUNTERSIGN_KEYS` (SEC-35)."""

from __future__ import annotations

from typing import Any, Final

from django.db import models, transaction

from plans import custody
from plans.models import Plan, Target, Webhook

SECRETS: Final[dict[type[models.Model], tuple[str, ...]]] = {
    Target: ("credential",),
    Plan: ("token", "commit_body"),
    Webhook: ("secret", "old_secret"),
}


def also(model: type[models.Model], *names: str) -> None:
    """Columns that an app holds which plans never import."""
    SECRETS[model] = names


def rekey_all() -> int:
    """One row at a time, under its lock; how many there were. Raises InvalidToken.

    Processes must have been started with the new key in front: what they encrypt meanwhile is
    then by the new key, too.
    """
    return sum(_rekey(model, names) for model, names in SECRETS.items())


def _rekey(model: type[models.Model], names: tuple[str, ...]) -> int:
    rows = model._default_manager.exclude(**{f"{name}__isnull": True for name in names})
    pks = list(rows.values_list("pk", flat=True))
    for pk in pks:
        with transaction.atomic():
            row = model._default_manager.select_for_update(of=("self",)).get(pk=pk)
            held = {name: getattr(row, name) for name in names}
            changed: dict[str, Any] = {
                name: custody.rotate(blob) for name, blob in held.items() if blob is not None
            }
            if changed:
                model._default_manager.filter(pk=pk).update(**changed)
    return len(pks)
