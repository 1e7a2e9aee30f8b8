"""Is it alive, is it ready: for whoever restarts processes and routes requests."""

import time
from typing import Any, Final

import redis
from django.conf import settings
from django.db import Error as DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from audit.lag import unsealed_seconds
from plans import emergency, heartbeats
from plans.backlog import clock_skew_seconds, oldest_due_seconds

BROKER_SECONDS: Final = 0.5
# Above these, in seconds, a part is not ok.
OLDEST_DUE: Final = 15.0
SWEEPER_SILENT: Final = 10.0
WORKER_SILENT: Final = 15.0
SEAL_LAG: Final = 30.0
CLOCK_SKEW: Final = 60.0
QUEUES: Final = ("commit", "default")
# Without one of these nothing is promised any more; without the others it works, later or untold.
NEEDED: Final = ("postgres", "commits", "sweeper", "clock")


@require_safe
def live(request: HttpRequest) -> HttpResponse:
    """The process answers; nothing else is asked."""
    return JsonResponse({"status": "live"}, headers={"Cache-Control": "no-store"})


@require_safe
def ready(request: HttpRequest) -> HttpResponse:
    """Each part apart. 503 names what is red; a dead broker, worker or sealer is only yellow."""
    parts = {"broker": _broker(), **_parts()}
    failing = [name for name, part in parts.items() if not part["ok"]]
    red = [name for name in failing if name in NEEDED]
    status = "unavailable" if red else "degraded" if failing else "ready"
    return JsonResponse(
        {"status": status, "failing": failing, **parts},
        status=503 if red else 200,
        headers={"Cache-Control": "no-store"},
    )


def _parts() -> dict[str, dict[str, Any]]:
    """What PostgreSQL knows, in six queries."""
    began = time.monotonic()
    try:
        age, skew = oldest_due_seconds(), clock_skew_seconds()
        silent, lag, stop = heartbeats.silences(), unsealed_seconds(), emergency.current()
    except DatabaseError:
        return {"postgres": {"ok": False}, "commits": {"ok": False, "oldest_due_seconds": None}}
    sweeper = silent.get(heartbeats.SWEEPER)
    return {
        "postgres": {"ok": True, "milliseconds": _since(began)},
        "commits": {"ok": age <= OLDEST_DUE, "oldest_due_seconds": age},
        "sweeper": {"ok": _heard(sweeper, SWEEPER_SILENT), "silent_seconds": _rounded(sweeper)},
        "workers": _workers(silent),
        "seals": {"ok": lag <= SEAL_LAG, "lag_seconds": lag},
        "clock": {"ok": abs(skew) <= CLOCK_SKEW, "skew_seconds": skew},
        # The reason is for people who are signed in.
        "sending": {"ok": stop is None, "stopped_since": stop and stop.stopped_at},
    }


def _workers(silent: dict[str, float]) -> dict[str, Any]:
    heard = {queue: silent.get(heartbeats.worker(queue)) for queue in QUEUES}
    return {
        "ok": all(_heard(seconds, WORKER_SILENT) for seconds in heard.values()),
        "silent_seconds": {queue: _rounded(seconds) for queue, seconds in heard.items()},
    }


def _heard(seconds: float | None, most: float) -> bool:
    """Never heard of is silent."""
    return seconds is not None and seconds <= most


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)


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
