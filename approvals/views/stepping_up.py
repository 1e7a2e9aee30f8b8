"""Whether the person signed in a moment ago, and where to do it again (SEC-22)."""

from __future__ import annotations

import time
from urllib.parse import urlencode

from allauth.account.authentication import get_authentication_records
from django.conf import settings
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.http import HttpRequest
from django.urls import reverse


def recently(request: HttpRequest) -> bool:
    """The session's last proof of who this is, a sign-in or a confirmation, is still fresh."""
    records = get_authentication_records(request, request.user)
    last = max((record["at"] for record in records), default=0.0)
    age = time.time() - last
    return bool(0 <= age < settings.ACCOUNT_REAUTHENTICATION_TIMEOUT)


def address(then: str) -> str:
    """The page that asks who you are, and leads back to `then`."""
    return f"{reverse('account_reauthenticate')}?{urlencode({REDIRECT_FIELD_NAME: then})}"
