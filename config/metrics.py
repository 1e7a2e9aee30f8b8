"""`/metrics` in Prometheus's format, for whoever watches; closed to everybody else.

Every value is read from PostgreSQL at the scrape, so that any process gives the whole picture.
The counters are a few hundred rows that the sweeper keeps (`plans.counting`), gauges look at open
work alone: a scrape costs twelve short queries however many plans there are.
"""

import ipaddress
import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from approvals.notices import rows as notices
from audit.lag import unsealed_seconds
from plans import backlog, counting, emergency, health, heartbeats
from plans.models import Target

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

FORWARDED: Final = ("X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Forwarded", "Via")
# Series by the action that is counted: name, what it says, and the names of word and status.
SERIES: Final = {
    "decision.recorded": ("decisions", "Decisions by verdict.", "verdict"),
    "decision.refused": ("refused_decisions", "Decisions that were refused, by code.", "code"),
    "attempt.closed": ("attempts", "Commit attempts that ended, by outcome.", "outcome"),
    "replan.queued": ("replans", "Re-plans queued, by cause.", "cause"),
}


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """401 without `Authorization: Bearer METRICS_TOKEN`, unless asked from this machine."""
    if not _may_read(request):
        return HttpResponse(
            "Send METRICS_TOKEN as a bearer token.\n",
            status=401,
            content_type="text/plain; charset=utf-8",
            headers={"WWW-Authenticate": "Bearer", "Cache-Control": "no-store"},
        )
    # Loaded by the first scrape: no process that is never scraped pays for it.
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector())
    return HttpResponse(
        generate_latest(registry),
        content_type=CONTENT_TYPE_LATEST,
        headers={"Cache-Control": "no-store"},
    )


def _may_read(request: HttpRequest) -> bool:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    token = settings.METRICS_TOKEN
    if token and scheme.lower() == "bearer":
        return secrets.compare_digest(given.strip().encode(), token.encode())
    return _from_this_machine(request)


def _from_this_machine(request: HttpRequest) -> bool:
    """Loopback is only a caller's address while no proxy stands in front of us."""
    behind = (
        settings.HTTPS
        or settings.ALLAUTH_TRUSTED_PROXY_COUNT
        or any(name in request.headers for name in FORWARDED)
    )
    try:
        return not behind and ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


class _Collector:
    """What prometheus_client asks for its samples."""

    def collect(self) -> "Iterator[Metric]":
        yield from _counters()
        yield from _work()
        yield from _parts()
        yield from _targets()
        yield from _notices()


def _counters() -> "Iterator[Metric]":
    rows = counting.counted()
    yield _counter("events", "Events of the audit trail.", ("action",), _sums(rows, 0))
    moved = [row for row in rows if row[3]]
    help_text = "Plans that arrived at a status."
    yield _counter("plans_moved", help_text, ("target", "status"), _sums(moved, 2, 3))
    for action, (name, told, label) in SERIES.items():
        mine = [row for row in rows if row[0] == action]
        yield _counter(name, told, ("target", label), _sums(mine, 2, 1))
    yield _approve_to_send([row for row in rows if row[0] == counting.APPROVE_TO_SEND])


def _sums(rows: list[Any], *columns: int) -> dict[tuple[str, ...], float]:
    found: dict[tuple[str, ...], float] = {}
    for row in rows:
        if row[0] != counting.APPROVE_TO_SEND:
            key = tuple(row[column] for column in columns)
            found[key] = found.get(key, 0) + row[4]
    return found


def _approve_to_send(rows: list[Any]) -> "Metric":
    from prometheus_client.metrics_core import HistogramMetricFamily

    family = HistogramMetricFamily(
        "countersign_approve_to_send_seconds",
        "From the last approval to the first commit call.",
        labels=("target",),
    )
    for target in sorted({row[2] for row in rows}):
        mine = {row[1]: row for row in rows if row[2] == target}
        total, buckets = 0, []
        for bound in counting.BOUNDS:
            total += mine[bound][4] if bound in mine else 0
            buckets.append((bound, float(total)))
        family.add_metric([target], buckets, sum(row[5] for row in mine.values()))
    return family


def _work() -> "Iterator[Metric]":
    yield _gauge("plans", "Plans that are not closed.", ("status",), _keyed(backlog.alive()))
    help_text = "Re-plans that wait, run or are parked."
    yield _gauge("replans_waiting", help_text, ("status",), _keyed(backlog.replans()))
    age = backlog.oldest_due_seconds()
    yield _gauge("oldest_due_commit_seconds", "Age of the oldest due commit.", (), {(): age})
    stopped = emergency.current() is not None
    yield _gauge("emergency_stop", "1 while every send is held.", (), {(): stopped})


def _parts() -> "Iterator[Metric]":
    silent = _keyed(heartbeats.silences())
    yield _gauge("silent_seconds", "Since a process of this part was heard.", ("part",), silent)
    lag, skew = unsealed_seconds(), backlog.clock_skew_seconds()
    yield _gauge("seal_lag_seconds", "Age of the oldest event without a seal.", (), {(): lag})
    yield _gauge("clock_skew_seconds", "PostgreSQL's clock less ours.", (), {(): skew})


def _targets() -> "Iterator[Metric]":
    rows = list(Target.objects.order_by("name").only("name", "circuit_opened_at"))
    seen = health.of(target.pk for target in rows)
    label = ("target",)
    share = {(target.name,): seen[target.pk].share for target in rows}
    yield _gauge("target_fault_share", "Of the calls lately, how many failed.", label, share)
    skews = {(target.name,): seen[target.pk].skew_seconds for target in rows}
    known = {key: skew for key, skew in skews.items() if skew is not None}
    yield _gauge("target_clock_skew_seconds", "The target's clock less ours.", label, known)
    circuits = {(target.name,): target.circuit_opened_at is not None for target in rows}
    yield _gauge("target_circuit_open", "1 while its credential is refused.", label, circuits)


def _notices() -> "Iterator[Metric]":
    help_text = "Notices that were not delivered yet."
    yield _gauge("notices_waiting", help_text, ("kind",), _keyed(notices.waiting()))
    help_text = "Ways to tell groups: on, of these failing now, and stopped by failing."
    yield _gauge("notice_channels", help_text, ("state",), _keyed(notices.states()))


def _keyed(values: dict[str, Any]) -> dict[tuple[str, ...], float]:
    return {(str(key),): float(value) for key, value in values.items()}


def _gauge(name: str, told: str, labels: tuple[str, ...], values: Any) -> "Metric":
    from prometheus_client.metrics_core import GaugeMetricFamily

    family = GaugeMetricFamily(f"countersign_{name}", told, labels=labels)
    for key, value in values.items():
        family.add_metric(key, float(value))
    return family


def _counter(name: str, told: str, labels: tuple[str, ...], values: Any) -> "Metric":
    from prometheus_client.metrics_core import CounterMetricFamily

    family = CounterMetricFamily(f"countersign_{name}", told, labels=labels)
    for key, value in sorted(values.items()):
        family.add_metric(key, float(value))
    return family
