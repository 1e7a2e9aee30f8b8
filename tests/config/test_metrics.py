"""`/metrics`: closed to strangers, right in every process, as dear for many plans as for few."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from audit import actors
from config.checks import check_metrics_token
from plans import counting, emergency, health, heartbeats
from plans.clock import clock
from plans.exchanges import Answer, NotSent
from plans.models import Counter, Plan, Target
from plans.status import Status

pytestmark = pytest.mark.django_db
TOKEN = "scrape-scrape-scrape"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
type Samples = dict[tuple[str, ...], float]


def samples(client: Client) -> Samples:
    """Every sample by its name and the values of its labels, in the order of their names."""
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain")
    return {
        (
            sample.name.removeprefix("countersign_"),
            *(value for _, value in sorted(sample.labels.items())),
        ): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


# ── who may ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("address", "headers", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("::1", {}, 200),
        ("10.0.0.7", {}, 401),
        ("10.0.0.7", BEARER, 200),
        ("10.0.0.7", {"Authorization": f"bearer {TOKEN}"}, 200),
        ("10.0.0.7", {"Authorization": "Bearer wrong"}, 401),
        ("10.0.0.7", {"Authorization": "Bearer "}, 401),
        ("10.0.0.7", {"Authorization": f"Basic {TOKEN}"}, 401),
        ("10.0.0.7", {"Authorization": f"Bearer {TOKEN}ä"}, 401),
        # A proxy on this machine speaks for the world.
        ("127.0.0.1", {"X-Forwarded-For": "203.0.113.9"}, 401),
        ("127.0.0.1", {"Forwarded": "for=203.0.113.9"}, 401),
        ("127.0.0.1", {"X-Forwarded-For": "203.0.113.9", **BEARER}, 200),
        ("", {}, 401),
    ],
)
def test_it_is_for_this_machine_or_whoever_has_the_token(
    client: Client, settings: LazySettings, address: str, headers: dict[str, str], status: int
) -> None:
    settings.METRICS_TOKEN = TOKEN
    answer = client.get("/metrics", headers=headers, REMOTE_ADDR=address)
    assert answer.status_code == status
    assert ("countersign_" in answer.text) is (status == 200)


@pytest.mark.parametrize("setting", [{"HTTPS": True}, {"ALLAUTH_TRUSTED_PROXY_COUNT": 1}])
def test_behind_a_proxy_only_the_token_opens_it(
    client: Client, settings: LazySettings, setting: dict[str, Any]
) -> None:
    settings.METRICS_TOKEN = TOKEN
    for name, value in setting.items():
        setattr(settings, name, value)
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers=BEARER).status_code == 200


@pytest.mark.parametrize("token", [None, ""])
def test_without_a_token_no_token_opens_it(
    client: Client, settings: LazySettings, token: str | None
) -> None:
    settings.METRICS_TOKEN = token
    for given in ("Bearer ", "Bearer", "Bearer None", ""):
        headers = {"Authorization": given}
        assert client.get("/metrics", headers=headers, REMOTE_ADDR="10.0.0.7").status_code == 401


# ── what it says ─────────────────────────────────────────────────────────────────────────────


def test_an_empty_installation_has_its_gauges(client: Client) -> None:
    found = samples(client)
    assert found["plans", "pending"] == found["replans_waiting", "parked"] == 0
    assert found["oldest_due_commit_seconds",] == found["emergency_stop",] == 0
    assert abs(found["clock_skew_seconds",]) < 5


def test_counters_are_summed_by_what_they_say(client: Client) -> None:
    rows = [
        ("attempt.closed", "applied", "billing", "", 7),
        ("attempt.closed", "applied", "stock", "", 2),
        ("attempt.closed", "unknown", "billing", "", 1),
        ("decision.recorded", "approve", "billing", "", 5),
        ("decision.refused", "already-decided", "billing", "", 3),
        ("replan.queued", "expired", "billing", "", 4),
        ("plan.expired", "", "billing", "expired", 3),
        ("plan.committed", "", "billing", "committed", 7),
    ]
    names = ("action", "word", "target", "status", "value")
    Counter.objects.bulk_create(Counter(**dict(zip(names, row, strict=True))) for row in rows)
    found = samples(client)
    assert found["attempts_total", "applied", "billing"] == 7
    assert found["attempts_total", "applied", "stock"] == 2
    assert found["events_total", "attempt.closed"] == 10
    assert found["decisions_total", "billing", "approve"] == 5
    assert found["refused_decisions_total", "already-decided", "billing"] == 3
    assert found["replans_total", "expired", "billing"] == 4
    assert found["plans_moved_total", "committed", "billing"] == 7
    assert found["plans_moved_total", "expired", "billing"] == 3


def test_the_histogram_is_cumulative_and_no_event(client: Client) -> None:
    for bound, value, seconds in (("0.25", 3, 0.6), ("1.0", 2, 1.5), ("+Inf", 1, 400.0)):
        Counter.objects.create(
            action=counting.APPROVE_TO_SEND,
            word=bound,
            target="billing",
            status="",
            value=value,
            seconds=seconds,
        )
    found = samples(client)
    name = "approve_to_send_seconds"
    buckets = [found[f"{name}_bucket", bound, "billing"] for bound in ("0.1", "0.25", "0.5", "1.0")]
    assert buckets == [0, 3, 3, 5]
    assert found[f"{name}_bucket", "300.0", "billing"] == 5
    assert found[f"{name}_bucket", "+Inf", "billing"] == found[f"{name}_count", "billing"] == 6
    assert found[f"{name}_sum", "billing"] == pytest.approx(402.1)
    assert ("events_total", counting.APPROVE_TO_SEND) not in found


def test_gauges_are_of_this_moment(
    client: Client, make_plan: Callable[..., Plan], billing: Target
) -> None:
    make_plan()
    make_plan(Status.APPROVED, next_attempt_at=clock() - timedelta(seconds=9))
    make_plan(Status.COMMITTED)
    health.forget()
    health.note(billing.pk, NotSent("connect", "refused"))
    health.forget()
    health.note(billing.pk, Answer(200, {}, b"", date_skew_seconds=2.5))
    health.forget()
    heartbeats.beat([heartbeats.SWEEPER])
    emergency.stop("Now.", actor=actors.OPERATOR)
    Target.objects.update(circuit_opened_at=clock())
    found = samples(client)
    assert (found["plans", "pending"], found["plans", "approved"]) == (1, 1)
    assert ("plans", "committed") not in found
    assert 9 <= found["oldest_due_commit_seconds",] < 11
    assert found["emergency_stop",] == found["target_circuit_open", "billing"] == 1
    assert found["target_fault_share", "billing"] == pytest.approx(0.5, abs=0.01)
    assert found["target_clock_skew_seconds", "billing"] == 2.5
    assert found["silent_seconds", "sweeper"] < 2


def test_a_scrape_asks_as_much_whatever_there_is(
    client: Client, make_plan: Callable[..., Plan], django_assert_num_queries: Callable[..., Any]
) -> None:
    client.get("/metrics")
    for number in range(30):
        make_plan()
        Target.objects.create(name=f"t{number}", base_url="https://t.example")
    with django_assert_num_queries(12):
        client.get("/metrics")


def test_it_holds_no_token_and_no_person(
    client: Client, make_plan: Callable[..., Plan], api_key: str
) -> None:
    plan = make_plan()
    text = client.get("/metrics").text
    for secret in (plan.plan_id, plan.token_sha256, api_key, "dana", "support-agent"):
        assert secret not in text


@pytest.mark.parametrize(("token", "faults"), [(None, 0), ("", 0), ("x" * 15, 1), ("x" * 16, 0)])
def test_a_token_that_can_be_guessed_is_refused_at_the_start(
    settings: LazySettings, token: str | None, faults: int
) -> None:
    settings.METRICS_TOKEN = token
    assert len(check_metrics_token()) == faults
