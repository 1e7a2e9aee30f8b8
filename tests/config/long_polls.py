"""An agent that waits for its plan, and what may happen meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
from django.db import connection, transaction

from audit.actors import CLOCK
from plans.lifecycle import Verb, transition
from plans.models import Plan
from tests.plans.api_calls import submission


def submitted(web: httpx.Client, plan_id: str = "pl_1") -> httpx.Response:
    answer = web.post("/plans", json=submission(plan_id))
    assert answer.status_code == 201, answer.text
    return answer


def later(seconds: float, act: Callable[[], Any]) -> threading.Timer:
    timer = threading.Timer(seconds, act)
    timer.start()
    return timer


def follow(plan_id: str, verb: Verb) -> None:
    with transaction.atomic():
        pk = Plan.objects.values_list("pk", flat=True).get(plan_id=plan_id)
        transition(Plan.objects.locked(pk), verb, actor=CLOCK)


def follow_and_close(plan_id: str, verb: Verb = Verb.VERIFY) -> None:
    """`follow` in a thread of its own."""
    try:
        follow(plan_id, verb)
    finally:
        connection.close()


def wait(web: httpx.Client, path: str, tag: str, seconds: int = 20) -> tuple[httpx.Response, float]:
    began = time.monotonic()
    headers = {"If-None-Match": tag, "Prefer": f"wait={seconds}"}
    answer = web.get(path, headers=headers)
    return answer, time.monotonic() - began
