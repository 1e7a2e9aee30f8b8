"""An old key can go after everything is encrypted by the new one (SEC-35)."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from cryptography.fernet import Fernet, InvalidToken
from django.apps import apps
from django.core.management import call_command
from django.db.models import BinaryField

from plans import custody
from plans.models import Plan, Target
from plans.rekeying import SECRETS
from plans.status import Status

pytestmark = pytest.mark.django_db


def test_the_old_key_opens_nothing_more_and_is_not_needed(
    make_plan: Callable[..., Plan], billing: Target, settings: Any
) -> None:
    Target.objects.create(name="without", base_url="https://t.example")
    plans = [make_plan(Status.PENDING, commit_body=custody.encrypt(b"body")), make_plan()]
    make_plan(Status.COMMITTED)
    tokens = [custody.decrypt(plan.token or b"") for plan in plans]
    old, new = settings.ENCRYPTION_KEYS, Fernet.generate_key().decode()
    settings.ENCRYPTION_KEYS = [new, *old]
    out = StringIO()
    call_command("rotate_keys", stdout=out)
    assert out.getvalue().startswith("3 rows")
    settings.ENCRYPTION_KEYS = [new]
    billing.refresh_from_db()
    assert custody.decrypt(billing.credential or b"") == b"billing-token-of-the-tests"
    for plan, token in zip(plans, tokens, strict=True):
        plan.refresh_from_db()
        assert custody.decrypt(plan.token or b"") == token
    assert custody.decrypt(plans[0].commit_body or b"") == b"body"
    settings.ENCRYPTION_KEYS = old
    with pytest.raises(InvalidToken):
        custody.decrypt(billing.credential or b"")


def test_every_encrypted_column_is_known() -> None:
    """A new one must be in `SECRETS`: nullable bytes are what custody writes."""
    known = {(model, name) for model, names in SECRETS.items() for name in names}
    found = {
        (model, field.name)
        for model in apps.get_models()
        for field in model._meta.fields
        if isinstance(field, BinaryField) and field.null
    }
    assert found == known
