"""The page of a plan as a person gets it, and as it is read."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from plans.models import Plan


def address(plan: Plan) -> str:
    return f"/plans/{plan.target.name}/{plan.plan_id}/"


def get(client: Client, person: User, plan: Plan, **headers: str) -> Any:
    client.force_login(person)
    return client.get(address(plan), headers=headers)


def text_of(response: Any) -> str:
    """What is read: tags out, white space as one blank."""
    body = re.sub(r"<(title|script|style)\b.*?</\1>", " ", response.content.decode(), flags=re.S)
    return " ".join(unescape(re.sub(r"<[^>]*>", "", body)).split())


def read(client: Client, person: User, plan: Plan) -> str:
    response = get(client, person, plan)
    assert response.status_code == 200
    return text_of(response)
