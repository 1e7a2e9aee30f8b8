"""How long plans, keys and tokens live, and what is kept of them."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from countersign_target import Action, Operation, State
from countersign_target.canonical import rfc3339
from countersign_target.sql import KEYS, PLANS
from tests.target.core.owner import Owner, effects
from tests.target.crib import Crib, code


def test_a_late_commit_is_refused_for_ever(crib: Crib, owner: Owner) -> None:
    plan = crib.plan()
    crib.let_expire(plan)
    first = crib.commit(plan, plan["plan_id"])
    assert code(first) == (410, "expired")
    # The clock steps back.
    crib.bend("expires_at", "2999-01-01T00:00:00.000Z", plan)
    assert crib.commit(plan, plan["plan_id"]).text == first.text
    assert code(crib.commit(plan)) == (410, "expired")
    assert (crib.status(plan), effects(crib), owner.plans) == ("expired", 0, [])


def test_expired_is_final_once_it_is_read(crib: Crib) -> None:
    plan = crib.plan()
    crib.let_expire(plan)
    assert crib.status(plan) == "expired"
    crib.bend("expires_at", "2999-01-01T00:00:00.000Z", plan)
    assert code(crib.commit(plan)) == (410, "expired")


def test_expired_wins_over_a_moved_world(crib: Crib, owner: Owner) -> None:
    plan = crib.plan()
    owner.actions = [Action("update", "thing/1", "size", 5, 6)]
    crib.let_expire(plan)
    assert code(crib.commit(plan)) == (410, "expired")


def test_time_that_passes_while_locks_are_waited_for_counts(crib: Crib, owner: Owner) -> None:
    plan = crib.plan()
    crib.bend("expires_at", rfc3339(datetime.now(UTC) + timedelta(seconds=0.3)), plan)

    def plan_slowly(inputs: dict[str, Any], state: State) -> Any:
        time.sleep(0.4)
        return owner.plan(inputs, state)

    slow = Crib(crib.store, crib.mark, Operation("change", plan_slowly, owner.apply))
    assert code(slow.commit(plan)) == (410, "expired")
    assert effects(crib) == 0


def test_a_lifespan_may_be_chosen_by_the_caller(crib: Crib, owner: Owner) -> None:
    def lifespan(request: Any) -> timedelta:
        return timedelta(seconds=int(request.header("Plan-Seconds") or 600))

    chosen = Crib(crib.store, crib.mark, owner.operation(lifespan=lifespan))
    answer = chosen.ask("POST", "/change/dry_run", {}, plan_seconds="65")
    created, expires = (
        datetime.fromisoformat(json.loads(answer.text)[at]) for at in ("created_at", "expires_at")
    )
    assert (expires - created).total_seconds() == 65


def test_only_the_hash_of_a_token_is_kept(crib: Crib) -> None:
    plan = crib.plan()
    crib.commit(plan)
    rows = crib.run(f"SELECT * FROM {PLANS}") + crib.run(f"SELECT * FROM {KEYS}")
    assert plan["plan_id"] in repr(rows)
    assert plan["plan_token"] not in repr(rows)


def test_keys_are_forgotten_and_plans_are_not(crib: Crib) -> None:
    plan = crib.plan()
    crib.commit(plan, "an-old-key")
    crib.run(f"UPDATE {KEYS} SET created_at = ?", "2020-01-01T00:00:00.000Z")
    crib.target._forgotten_at = float("-inf")
    other = crib.plan()
    assert crib.run(f"SELECT key FROM {KEYS}") == []
    assert code(crib.commit(plan, "an-old-key")) == (409, "plan-already-applied")
    assert crib.commit(other, "an-old-key").status == 200


def test_plans_that_came_to_nothing_are_forgotten_where_that_is_wished(
    crib: Crib, owner: Owner
) -> None:
    forgetful = Crib(crib.store, crib.mark, owner.operation(), plan_retention_seconds=86_400)
    applied, old, young = (forgetful.plan() for _ in range(3))
    assert forgetful.commit(applied).status == 200
    for plan in (applied, old):
        forgetful.let_expire(plan)
    forgetful.target._forgotten_at = float("-inf")
    forgetful.plan()
    assert forgetful.ask("GET", f"/plans/{old['plan_id']}").status == 404
    assert (forgetful.status(applied), forgetful.status(young)) == ("applied", "open")


def test_two_operations_do_not_share_tokens(crib: Crib, owner: Owner) -> None:
    other = Operation("other", owner.plan, owner.apply)
    both = Crib(crib.store, crib.mark, owner.operation(), other)
    plan = both.plan()
    body = {name: plan[name] for name in ("plan_token", "input_fingerprint")}
    answer = both.ask("POST", "/other/commit", body, idempotency_key="key-of-another")
    assert code(answer) == (404, "unknown-plan-token")


def test_a_quoted_key_is_the_same_key(crib: Crib) -> None:
    plan = crib.plan()
    first = crib.commit(plan, f"q-{plan['plan_id']}")
    assert crib.commit(plan, f'"q-{plan["plan_id"]}"').text == first.text
