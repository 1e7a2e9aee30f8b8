"""Faults on order: what the caller gets, and what was really done. 5-faults, FM-2 to FM-11."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import psycopg
import pytest

from tests.demo.billing_process import Target, running
from tests.demo.test_billing_commit import outcome, wait_until_running


@pytest.mark.parametrize(
    ("mode", "applied"),
    [
        ("apply_then_timeout", True),
        ("timeout_before_apply", False),
        ("apply_then_reset", True),
        ("reset_before_apply", False),
    ],
)
def test_an_answer_is_lost(target: Target, mode: str, applied: bool) -> None:
    plan = target.plan()
    target.arm(mode)
    with pytest.raises(httpx.TransportError):
        target.commit(plan, f"idem_{mode}")
    assert len(target.effects(plan)) == applied
    again = target.commit(plan, f"idem_{mode}")
    assert again.status_code == 200
    assert ("Idempotent-Replayed" in again.headers) is applied
    assert len(target.effects(plan)) == 1


@pytest.mark.parametrize(
    ("mode", "status", "applied"),
    [
        ("error_500", 500, False),
        ("apply_then_error_500", 500, True),
        ("error_503", 503, False),
        ("error_429", 429, False),
    ],
)
def test_an_error_is_answered(target: Target, mode: str, status: int, applied: bool) -> None:
    plan = target.plan()
    target.arm(mode, seconds=2)
    answer = target.commit(plan, f"idem_{mode}")
    assert outcome(answer) == (status, "injected-fault")
    assert answer.headers.get("Retry-After") == ("2" if status in (429, 503) else None)
    assert len(target.effects(plan)) == applied
    assert target.commit(plan, f"idem_{mode}").status_code == 200


def test_silence_blocks_nobody_else(target: Target) -> None:
    plan, other = target.plan(), target.plan()
    target.arm("apply_then_timeout", seconds=60)
    with httpx.Client(timeout=0.5, trust_env=False) as impatient:
        impatient.headers = target.app.headers
        body = {name: plan[name] for name in ("plan_token", "input_fingerprint")}
        headers = {"Idempotency-Key": "idem_impatient"}
        with pytest.raises(httpx.ReadTimeout):
            impatient.post(f"{target.url}/refund/commit", json=body, headers=headers)
    begun = time.monotonic()
    assert target.read(plan)["status"] == "applied"
    assert target.commit(plan, "idem_impatient").headers["Idempotent-Replayed"] == "true"
    assert target.commit(other).status_code == 200
    assert time.monotonic() - begun < 5


def test_a_running_commit_is_in_progress(target: Target) -> None:
    plan = target.plan()
    target.arm("apply_slowly", seconds=1)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(target.commit, plan, "idem_slow")
        wait_until_running(target, plan)
        assert outcome(target.commit(plan, "idem_slow")) == (409, "in-progress")
        assert outcome(target.commit(plan, "idem_other")) == (409, "plan-already-applied")
        assert slow.result().status_code == 200
    assert target.read(plan)["status"] == "applied"


def test_a_fault_lasts_as_often_as_ordered(target: Target) -> None:
    plan = target.plan()
    target.arm("error_500", times=2)
    statuses = [target.commit(plan, "idem_thrice").status_code for _ in range(3)]
    assert statuses == [500, 500, 200]


def test_none_disarms(target: Target) -> None:
    target.arm("error_500", times=100)
    target.arm("none")
    assert target.commit(target.plan()).status_code == 200


@pytest.mark.parametrize(
    "order",
    [
        {},
        {"commit": "explode"},
        {"commit": ["none"]},
        {"commit": "none", "times": 0},
        {"commit": "none", "seconds": -1},
        {"commit": "none", "seconds": True},
        {"commit": "none", "dry_run": "none"},
    ],
)
def test_it_refuses_an_order_it_does_not_understand(target: Target, order: object) -> None:
    assert target.app.post("/_faults", json=order).status_code == 422


def test_it_survives_a_restart_of_its_database(target: Target) -> None:
    plan = target.plan()
    with psycopg.connect(target.database_url) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    first = target.commit(plan, "idem_restart")
    assert (first.status_code, first.headers.get("Retry-After")) == (503, "1")
    assert target.commit(plan, "idem_restart").status_code == 200
    assert len(target.effects(plan)) == 1


def test_a_silent_answer_does_not_hold_the_shutdown(billing_database_url: str) -> None:
    with running(billing_database_url) as target:
        plan = target.plan()
        target.arm("apply_then_timeout", seconds=600)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(target.commit, plan)
            for _ in range(200):
                if target.effects(plan):
                    break
                threading.Event().wait(0.02)
            target.process.terminate()
            assert target.process.wait(timeout=5) == 0
            assert isinstance(waiting.exception(), httpx.TransportError)
