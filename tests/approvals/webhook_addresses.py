"""Where webhooks are set, and the secrets that a page shows."""

from __future__ import annotations

import re

LIST, ADD = "/settings/webhooks/", "/settings/webhooks/addition/"
URL = "https://93.184.216.34/hook?key=of-the-receiver"


def secrets_in(page: str) -> list[str]:
    return re.findall(r"whsec_[A-Za-z0-9+/=]+", page.replace("&#x2F;", "/"))
