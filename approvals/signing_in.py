"""Who signed in, failed to, or changed their password: events like every other (SEC-27)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Protocol, TypeGuard

from allauth.account.signals import password_changed
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_login_failed
from django.contrib.sessions.backends.base import SessionBase
from django.db import DatabaseError, transaction

from audit import actors
from audit.actions import Action
from audit.recording import Subject, record
from plans.configuration.changes import Change, KeyChange

# What cannot be anybody's name may be a password in the wrong box: it is not written down.
_NAME: Final = re.compile(r"[\w.@+-]{1,150}")
NOT_A_NAME: Final = "something that is no name"


class Request(Protocol):
    """What is needed of a request; the rest is the views' business."""

    path: str
    session: SessionBase


def listen() -> None:
    """Called once, when the apps are ready."""
    user_logged_in.connect(signed_in, dispatch_uid="approvals.signed_in")
    user_login_failed.connect(sign_in_failed, dispatch_uid="approvals.sign_in_failed")
    password_changed.connect(changed_password, dispatch_uid="approvals.changed_password")


def signed_in(sender: object, request: Request | None, user: User, **_: Any) -> None:
    """No event, no session: what the trail cannot hold has not happened (L-1)."""
    if not _is_a_persons(request):
        return
    try:
        with transaction.atomic():
            record(Action.SIGNED_IN, actors.person(user), Subject())
    except DatabaseError:
        # In memory alone, so that no query can fail: nothing is stored, the cookie goes.
        request.session.clear()
        raise


def sign_in_failed(
    sender: object, credentials: Mapping[str, Any], request: Request | None = None, **_: Any
) -> None:
    """The name as it was typed, whether or not anybody has it; no ID, since nobody proved it."""
    if not _is_a_persons(request):
        return
    typed = str(credentials.get("username") or "")
    name = typed if _NAME.fullmatch(typed) else NOT_A_NAME
    with transaction.atomic():
        record(Action.SIGN_IN_FAILED, actors.Actor("person", "", name), Subject())


def changed_password(sender: object, user: User, **_: Any) -> None:
    """Of one's own; in the transaction of the change, which the address opens (L-1)."""
    changed = (KeyChange("password", words="set"),)
    Change("person", user.get_username(), False, changed).record(actors.person(user))


def _is_a_persons(request: Request | None) -> TypeGuard[Request]:
    """Signing in happens at an address; scripts and tests that log somebody in have none."""
    return request is not None and bool(request.path)
