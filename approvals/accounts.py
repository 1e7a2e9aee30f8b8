"""Local accounts in the product's words: operators make them, people change their password."""

from __future__ import annotations

from typing import ClassVar

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest  # noqa: TID251  # what allauth asks of an adapter
from django.urls import reverse


class Accounts(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Errors name what the labels of the forms name, and say what to do next."""

    error_messages: ClassVar[dict[str, str]] = {
        **DefaultAccountAdapter.error_messages,
        "username_password_mismatch": "The user name or the password is not right.",
        "invalid_login": "The user name or the password is not right.",
        "too_many_login_attempts": "Too many failed sign-ins. Wait five minutes, then try again.",
        "incorrect_password": "The password is not right.",
        "enter_current_password": "The present password is not right.",
        "rate_limited": "Too many tries. Wait a minute, then try again.",
    }

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("review")
