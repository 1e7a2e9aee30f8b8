"""The commit: once per plan, whatever is repeated. 7-interfaces, "The target's side"; T-7, T-8."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx
import psycopg
import pytest

from tests.demo.billing_process import Target, number_of, running


def outcome(answer: httpx.Response) -> tuple[int, str | None]:
    """Status and code of a refusal."""
    return answer.status_code, answer.json().get("code")


def test_a_commit_applies_the_plan(target: Target) -> None:
    plan = target.plan()
    answer = target.commit(plan, "idem_first")
    body = answer.json()
    assert (answer.status_code, body["plan_id"], body["status"]) == (
        200,
        plan["plan_id"],
        "applied",
    )
    result = body["result"]
    assert result.pop("refund_id").startswith("rfd_")
    assert result == {
        "invoice_id": number_of(plan),
        "refunded_cents": 48000,
        "status": "refunded",
        "amount_cents": 48000,
    }
    assert "Idempotent-Replayed" not in answer.headers
    assert "Date" in answer.headers
    assert target.invoice(number_of(plan))["status"] == "refunded"
    [effect] = target.effects(plan)
    assert (effect["idempotency_key"], effect["amount_cents"]) == ("idem_first", 48000)


def test_the_same_key_brings_the_stored_answer(target: Target) -> None:
    plan = target.plan()
    first, second = (target.commit(plan, "idem_again") for _ in range(2))
    assert (second.status_code, second.content) == (200, first.content)
    assert second.headers["Idempotent-Replayed"] == "true"
    assert len(target.effects(plan)) == 1


def test_a_quoted_key_is_the_same_key(target: Target) -> None:
    plan = target.plan()
    target.commit(plan, "idem_quoted")
    assert target.commit(plan, '"idem_quoted"').headers["Idempotent-Replayed"] == "true"


def test_a_key_is_good_for_one_body(target: Target) -> None:
    target.commit(target.plan(), "idem_taken")
    other = target.plan()
    assert outcome(target.commit(other, "idem_taken")) == (422, "idempotency-key-reused")
    assert target.effects(other) == []


def test_an_applied_plan_is_refused_under_another_key(target: Target) -> None:
    plan = target.plan()
    target.commit(plan)
    answer = target.commit(plan)
    assert outcome(answer) == (409, "plan-already-applied")
    assert "changed" not in answer.json()


def test_a_moved_world_is_named(target: Target) -> None:
    plan = target.plan()
    target.move(plan, 20000)
    answer = target.commit(plan)
    assert outcome(answer) == (409, "state-changed")
    assert answer.json()["plan_created_at"] == plan["created_at"]
    assert answer.json()["changed"] == [
        {"path": "refunded_cents", "target": plan["covers"][0], "planned": 0, "current": 20000}
    ]
    assert target.read(plan)["status"] == "not_applied"
    assert target.effects(plan) == []


def test_not_applied_is_a_final_word(target: Target) -> None:
    plan = target.plan()
    target.move(plan, 20000)
    first = target.commit(plan, "idem_moved")
    back = "UPDATE invoices SET refunded_cents = 0 FROM plans WHERE number = invoice_number"
    target.execute(f"{back} AND plan_id = %s", plan)
    assert target.commit(plan).json()["changed"] == first.json()["changed"]
    assert target.commit(plan, "idem_moved").headers["Idempotent-Replayed"] == "true"
    assert target.effects(plan) == []


def test_a_late_commit_is_refused(target: Target) -> None:
    plan = target.plan()
    target.let_expire(plan)
    assert outcome(target.commit(plan)) == (410, "expired")
    assert target.read(plan)["status"] == "expired"


def test_expired_wins_over_a_moved_world(target: Target) -> None:
    plan = target.plan()
    target.move(plan, 100)
    target.let_expire(plan)
    assert outcome(target.commit(plan)) == (410, "expired")


def test_expired_is_a_final_word_even_if_the_clock_steps_back(target: Target) -> None:
    plan = target.plan()
    target.let_expire(plan)
    assert target.read(plan)["status"] == "expired"
    forward = "UPDATE plans SET expires_at = expires_at + interval '2 hours'"
    target.execute(f"{forward} WHERE plan_id = %s", plan)
    assert outcome(target.commit(plan)) == (410, "expired")
    assert target.effects(plan) == []


def test_an_applied_plan_tells_its_result(target: Target) -> None:
    plan = target.plan()
    done = target.commit(plan).json()
    read = target.read(plan)
    assert (read["status"], read["result"]) == ("applied", done["result"])
    assert read["first_applied_at"] == done["first_applied_at"]


def test_an_applied_plan_stays_applied_past_its_expiry(target: Target) -> None:
    plan = target.plan()
    target.commit(plan, "idem_early")
    target.let_expire(plan)
    assert target.read(plan)["status"] == "applied"
    assert target.commit(plan, "idem_early").status_code == 200


def test_token_and_fingerprint_must_belong_together(target: Target) -> None:
    plan, other = target.plan(), target.plan()
    mixed = plan | {"input_fingerprint": other["input_fingerprint"]}
    assert outcome(target.commit(mixed)) == (422, "fingerprint-mismatch")
    assert target.commit(plan).status_code == 200


def test_an_unknown_token_is_not_there(target: Target) -> None:
    plan = target.plan() | {"plan_token": "guessed"}
    answer = target.commit(plan)
    assert outcome(answer) == (404, "unknown-plan-token")
    assert "guessed" not in answer.text


@pytest.mark.parametrize("key", ["", "two words", 'a"b', "x" * 256])
def test_a_commit_needs_a_good_key(target: Target, key: str) -> None:
    body = {name: target.plan()[name] for name in ("plan_token", "input_fingerprint")}
    answer = target.app.post("/refund/commit", json=body, headers={"Idempotency-Key": key})
    assert outcome(answer) == (400, "idempotency-key-missing")


def test_the_agents_token_does_not_commit(target: Target) -> None:
    plan = target.plan()
    assert target.commit(plan, client=target.agent).status_code == 403
    assert target.read(plan)["status"] == "open"


@pytest.mark.parametrize("keys", [1, 16])
def test_sixteen_at_once_apply_once(target: Target, keys: int) -> None:
    plan, barrier = target.plan(), threading.Barrier(16)

    def attempt(n: int) -> httpx.Response:
        barrier.wait()
        return target.commit(plan, f"idem_{plan['plan_id']}_{n % keys}")

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(attempt, range(16)))
    codes = Counter(answer.json().get("code") for answer in answers)
    fresh = [a for a in answers if a.is_success and "Idempotent-Replayed" not in a.headers]
    assert len(fresh) == 1
    assert len(target.effects(plan)) == 1
    assert target.invoice(number_of(plan))["refunded_cents"] == 48000
    allowed = {None, "in-progress"} if keys == 1 else {None, "plan-already-applied"}
    assert set(codes) <= allowed


def test_two_plans_of_one_invoice_never_pay_twice(target: Target) -> None:
    number = target.new_invoice()
    rivals = [target.dry_run(number).json() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(target.commit, rivals))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    assert target.invoice(number)["refunded_cents"] == 48000


def test_a_commit_that_dies_on_the_way_leaves_nothing(billing_database_url: str) -> None:
    with running(billing_database_url) as target:
        plan = target.plan()
        target.arm("apply_slowly", seconds=30)
        with ThreadPoolExecutor(1) as pool:
            dying = pool.submit(target.commit, plan, "idem_killed")
            wait_until_running(target, plan)
            target.process.kill()
            assert isinstance(dying.exception(), httpx.TransportError)
    with running(billing_database_url) as target:
        assert target.read(plan)["status"] in ("open", "in_progress")
        assert target.effects(plan) == []
        abandon_sessions(target)
        assert target.commit(plan, "idem_killed").status_code == 200
        assert len(target.effects(plan)) == 1


def wait_until_running(target: Target, plan: dict[str, object]) -> None:
    """Return once the read-back sees the commit's locks."""
    for _ in range(200):
        if target.read(plan)["status"] == "in_progress":
            return
        threading.Event().wait(0.02)
    raise AssertionError("the commit never began")


def abandon_sessions(target: Target) -> None:
    """End what the killed process left open at once; PostgreSQL notices by itself a bit later."""
    with psycopg.connect(target.database_url) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND state = 'idle in transaction'"
        )
