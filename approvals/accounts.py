"""Local accounts in the product's words: operators make them, people change their password."""

from __future__ import annotations

from typing import Any, ClassVar

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest  # noqa: TID251  # what allauth asks of an adapter
from django.urls import reverse
from django.utils.translation import gettext_lazy as _


class Accounts(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Errors name what the labels of the forms name, and say what to do next."""

    error_messages: ClassVar[dict[str, Any]] = {
        **DefaultAccountAdapter.error_messages,
        "username_password_mismatch": _("The user name or the password is not right."),
        "invalid_login": _("The user name or the password is not right."),
        "too_many_login_attempts": _(
            "Too many failed sign-ins. Wait five minutes, then try again."
        ),
        "incorrect_password": _("The password is not right."),
        "enter_current_password": _("The present password is not right."),
        "rate_limited": _("Too many tries. Wait a minute, then try again."),
    }

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("review")
