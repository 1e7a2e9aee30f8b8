"""Effects outside the store: the key is stored first, and nobody is told what nobody knows."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from countersign_target import (
    Applied,
    Change,
    Conflict,
    Later,
    NotApplied,
    Operation,
    Outcome,
    Outside,
    PartlyApplied,
    Plan,
    Planned,
    Problem,
    SendAgain,
    SqliteStore,
    State,
    Unknown,
)
from countersign_target.canonical import rfc3339
from countersign_target.postgresql import PostgresStore
from tests.target.crib import Crib, code
from tests.target.remote import Killed, Remote


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, new_store: Callable[[str], str]) -> Iterator[Any]:
    address = new_store(request.param)
    if request.param == "sqlite":
        yield SqliteStore(address)
    else:
        postgres = PostgresStore(address)
        yield postgres
        postgres.close()


@pytest.fixture
def remote() -> Remote:
    return Remote()


def crib_of(store: Any, remote: Remote, lease_seconds: float) -> Crib:
    outside = Outside(remote.look, lease_seconds)
    operation = Operation("change", remote.plan, remote.apply, outside=outside)
    return Crib(store, "?" if isinstance(store, SqliteStore) else "%s", operation)


@pytest.fixture
def crib(store: Any, remote: Remote) -> Crib:
    """Its leases lapse at once: a try that ended without a word is looked after immediately."""
    return crib_of(store, remote, 0.0)


def test_it_is_applied_once_and_the_answer_is_kept(crib: Crib, remote: Remote) -> None:
    plan = crib.plan(size=2)
    first = crib.commit(plan, plan["plan_id"])
    assert (first.status, json.loads(first.text)["result"]) == (200, {"size": 2})
    again = crib.commit(plan, plan["plan_id"])
    assert (again.text, again.headers["Idempotent-Replayed"]) == (first.text, "true")
    assert code(crib.commit(plan)) == (409, "plan-already-applied")
    assert (crib.status(plan), remote.writes) == ("applied", 1)


def test_a_moved_world_is_named_before_anything_is_sent(crib: Crib, remote: Remote) -> None:
    plan = crib.plan(size=2)
    remote.moves(5)
    answer = crib.commit(plan, plan["plan_id"])
    assert json.loads(answer.text)["changed"] == [
        {"path": "size", "target": "thing/1", "planned": 1, "current": 5}
    ]
    assert (crib.status(plan), remote.sent) == ("not_applied", [])
    assert crib.commit(plan, plan["plan_id"]).text == answer.text


def test_a_guard_that_holds_is_a_conflict(crib: Crib, remote: Remote) -> None:
    """The world moves between the look and the write; and where nothing covered did, that too."""
    plan = crib.plan(size=2)
    remote.version += 1
    answer = crib.commit(plan)
    assert code(answer) == (409, "state-changed")
    assert [each["path"] for each in json.loads(answer.text)["changed"]] == ["state"]
    assert (crib.status(plan), remote.writes) == ("not_applied", 0)


@pytest.mark.parametrize(
    ("fails", "heard", "status"),
    [
        (Problem(422, "refused", "The other system will not."), (422, "refused"), "not_applied"),
        (Conflict([Change("size", 1, 3)]), (409, "state-changed"), "not_applied"),
        (Later("No connection."), (503, "try-again"), "open"),
        (TimeoutError("no answer"), (500, "outcome-unknown"), "open"),
        (Problem(502, "broken", "A page of HTML."), (500, "outcome-unknown"), "open"),
    ],
)
def test_what_a_failed_try_says(
    crib: Crib, remote: Remote, fails: Exception, heard: tuple[int, str], status: str
) -> None:
    plan = crib.plan(size=2)
    remote.before = fails
    assert code(crib.commit(plan, plan["plan_id"])) == heard
    assert (crib.status(plan), remote.writes) == (status, 0)
    if status == "open":
        assert crib.commit(plan, plan["plan_id"]).status == 200
        assert remote.writes == 1


def test_after_a_try_that_was_surely_not_sent_any_key_will_do(crib: Crib, remote: Remote) -> None:
    plan = crib.plan(size=2)
    remote.before = Later("No connection.")
    assert crib.commit(plan, f"first-{plan['plan_id']}").status == 503
    assert crib.commit(plan, f"second-{plan['plan_id']}").status == 200


def test_nothing_is_sent_while_the_state_cannot_be_read(
    crib: Crib, remote: Remote, caplog: pytest.LogCaptureFixture
) -> None:
    plan = crib.plan(size=2)
    remote.away = True
    assert code(crib.commit(plan, plan["plan_id"])) == (503, "try-again")
    assert f"state of {plan['plan_id']} could not be read: " in caplog.text
    assert (crib.status(plan), remote.sent) == ("open", [])
    remote.away = False
    assert crib.commit(plan, plan["plan_id"]).status == 200


def kill(crib: Crib, plan: dict[str, Any]) -> None:
    with pytest.raises(Killed):
        crib.commit(plan, plan["plan_id"])


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("first", ["commit", "read"])
def test_killed_in_between_it_is_applied_once(
    crib: Crib, remote: Remote, when: str, first: str
) -> None:
    plan = crib.plan(size=2)
    setattr(remote, when, Killed())
    kill(crib, plan)
    if first == "read":
        assert crib.status(plan) == ("applied" if when == "after" else "open")
    answer = crib.commit(plan, plan["plan_id"])
    assert (answer.status, json.loads(answer.text)["result"]) == (200, {"size": 2})
    assert (crib.status(plan), remote.writes) == ("applied", 1)
    assert crib.commit(plan, plan["plan_id"]).headers["Idempotent-Replayed"] == "true"


def test_within_its_lease_a_killed_try_counts_as_running(store: Any, remote: Remote) -> None:
    crib = crib_of(store, remote, 60.0)
    plan = crib.plan(size=2)
    remote.after = Killed()
    kill(crib, plan)
    assert crib.status(plan) == "in_progress"
    assert code(crib.commit(plan, plan["plan_id"])) == (409, "in-progress")
    crib.bend("sending_until", "2020-01-01T00:00:00.000Z", plan)
    assert (crib.status(plan), remote.writes) == ("applied", 1)


def test_another_key_never_sends_a_second_time(crib: Crib, remote: Remote) -> None:
    plan = crib.plan(size=2)
    remote.before = Killed()
    kill(crib, plan)
    assert code(crib.commit(plan, f"other-{plan['plan_id']}")) == (409, "in-progress")
    assert remote.sent == [1]


def test_a_key_under_way_is_good_for_one_body(crib: Crib, remote: Remote) -> None:
    plan, other = crib.plan(size=2), crib.plan(size=3)
    remote.before = Killed()
    kill(crib, plan)
    assert code(crib.commit(other, plan["plan_id"])) == (422, "idempotency-key-reused")


@pytest.mark.parametrize(
    ("sees", "heard", "status"),
    [
        (Unknown(), (500, "outcome-unknown"), "open"),
        (
            NotApplied(Problem(409, "state-changed", "Moved.", changed=[])),
            (409, "state-changed"),
            "not_applied",
        ),
        (PartlyApplied("One of two."), (409, "partly-applied"), "partly_applied"),
        (Applied({"seen": True}), (200, None), "applied"),
    ],
)
def test_what_looking_finds_is_what_is_told(
    crib: Crib, remote: Remote, sees: Outcome, heard: tuple[int, str | None], status: str
) -> None:
    plan = crib.plan(size=2)
    remote.after = Killed()
    kill(crib, plan)
    remote.sees = sees
    assert code(crib.commit(plan, plan["plan_id"])) == heard
    assert (crib.status(plan), remote.sent) == (status, [1])


def test_nobody_knows_after_somebody_else_wrote_over_it(crib: Crib, remote: Remote) -> None:
    """T-8's rule inside the kit: the refusal may be about the change that the first try made."""
    plan = crib.plan(size=2)
    remote.after = Killed()
    kill(crib, plan)
    remote.moves(7)
    assert code(crib.commit(plan, plan["plan_id"])) == (500, "outcome-unknown")
    assert (crib.status(plan), remote.writes) == ("open", 1)


def test_a_refusal_of_a_second_try_proves_nothing(crib: Crib, remote: Remote) -> None:
    plan = crib.plan(size=2)
    remote.before = Killed()
    kill(crib, plan)
    remote.sees, remote.before = SendAgain(), Conflict()
    assert code(crib.commit(plan, plan["plan_id"])) == (500, "outcome-unknown")
    assert crib.status(plan) == "open"


def test_a_try_that_nobody_knows_the_end_of_never_expires(crib: Crib, remote: Remote) -> None:
    plan = crib.plan(size=2)
    remote.before = Killed()
    kill(crib, plan)
    crib.let_expire(plan)
    assert crib.status(plan) == "open"
    assert code(crib.commit(plan, plan["plan_id"])) == (500, "outcome-unknown")
    assert (remote.sent, remote.writes) == ([1], 0)


def test_a_late_first_try_is_refused_and_not_sent(crib: Crib, remote: Remote) -> None:
    plan = crib.plan(size=2)
    crib.let_expire(plan)
    assert code(crib.commit(plan)) == (410, "expired")
    assert (crib.status(plan), remote.sent) == ("expired", [])


def test_an_effect_that_is_there_counts_even_if_its_try_lapsed(store: Any, remote: Remote) -> None:
    """A slow try is overtaken by a read-back that finds nothing yet; its own end is still true."""
    crib = crib_of(store, remote, 0.0)
    plan = crib.plan(size=2)
    real = remote.apply

    def slowly(given: Plan) -> Any:
        assert crib.status(plan) == "open"
        return real(given)

    outside = Outside(remote.look, 0.0)
    slow = Crib(store, crib.mark, Operation("change", remote.plan, slowly, outside=outside))
    assert slow.commit(plan, plan["plan_id"]).status == 200
    assert (crib.status(plan), remote.writes) == ("applied", 1)


def test_a_look_that_takes_too_long_is_too_late(crib: Crib, remote: Remote) -> None:
    plan = crib.plan(size=2)
    real = remote.plan

    def plan_slowly(inputs: dict[str, Any], state: State) -> Planned:
        time.sleep(0.4)
        return real(inputs, state)

    outside = Outside(remote.look, 0.0)
    slow = Operation("change", plan_slowly, remote.apply, outside=outside)
    crib.bend("expires_at", rfc3339(datetime.now(UTC) + timedelta(seconds=0.3)), plan)
    assert code(Crib(crib.store, crib.mark, slow).commit(plan)) == (410, "expired")
    assert (crib.status(plan), remote.sent) == ("expired", [])


@pytest.mark.parametrize("answers", ["text", {"size": 2**60}, [1]])
def test_a_result_that_cannot_be_told_leaves_it_unknown(
    crib: Crib, remote: Remote, answers: Any
) -> None:
    plan = crib.plan(size=2)
    remote.answers = answers
    assert code(crib.commit(plan, plan["plan_id"])) == (500, "outcome-unknown")
    assert crib.status(plan) == "applied"
    assert remote.writes == 1
