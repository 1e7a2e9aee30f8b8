"""Is it alive, is it ready: for whoever restarts processes and routes requests."""

import time
from typing import Any

import redis
from django.conf import settings
from django.db import Error as DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from plans.backlog import oldest_due_seconds

BROKER_SECONDS = 0.5


@require_safe
def live(request: HttpRequest) -> HttpResponse:
    """The process answers; nothing else is asked."""
    return JsonResponse({"status": "live"}, headers={"Cache-Control": "no-store"})


@require_safe
def ready(request: HttpRequest) -> HttpResponse:
    """Each dependency apart. Only PostgreSQL is needed: without the broker commits leave later."""
    postgres, commits = _postgres()
    broker = _broker()
    status = "unavailable" if not postgres["ok"] else "ready" if broker["ok"] else "degraded"
    return JsonResponse(
        {"status": status, "postgres": postgres, "broker": broker, "commits": commits},
        status=200 if postgres["ok"] else 503,
        headers={"Cache-Control": "no-store"},
    )


def _postgres() -> tuple[dict[str, Any], dict[str, Any]]:
    """PostgreSQL, and the age in seconds of the oldest commit that is due and has not left."""
    began = time.monotonic()
    try:
        age = oldest_due_seconds()
    except DatabaseError:
        return {"ok": False}, {"oldest_due_seconds": None}
    return {"ok": True, "milliseconds": _since(began)}, {"oldest_due_seconds": age}


def _broker() -> dict[str, Any]:
    began = time.monotonic()
    broker = redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=BROKER_SECONDS,
        socket_connect_timeout=BROKER_SECONDS,
        retry=None,
    )
    try:
        broker.ping()
    except (redis.RedisError, OSError):
        return {"ok": False}
    finally:
        broker.close()
    return {"ok": True, "milliseconds": _since(began)}


def _since(began: float) -> float:
    return round((time.monotonic() - began) * 1000, 1)
