"""The core without a socket, on both stores: what an owner does, and what callers then hear."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from psycopg_pool import ConnectionPool

from countersign_target import (
    Action,
    Change,
    Conflict,
    Credentials,
    Later,
    Operation,
    Plan,
    Planned,
    Problem,
    SqliteStore,
    State,
    StoreAway,
    Target,
    not_allowed,
    nothing_to_change,
)
from countersign_target.canonical import fingerprint, plain, rfc3339, same
from countersign_target.postgresql import PostgresStore
from countersign_target.sql import KEYS, PLANS
from countersign_target.strict_json import parse_object
from tests.target.crib import AGENT, Crib, code


@dataclass
class Owner:
    """Does as it is told: what `plan` covers and returns or raises, and what `apply` does."""

    covers: dict[str, dict[str, Any]] = field(default_factory=dict)
    actions: Any = field(default_factory=lambda: [Action("update", "thing/1", "size", 1, 2)])
    refuses: Exception | None = None
    fails: BaseException | None = None
    result: Any = field(default_factory=lambda: {"done": True})
    plans: list[Plan] = field(default_factory=list)

    def plan(self, inputs: dict[str, Any], state: State) -> Any:
        for target, values in self.covers.items():
            state.cover(target, values)
        if self.refuses:
            raise self.refuses
        return self.actions

    def apply(self, plan: Plan) -> Any:
        self.plans.append(plan)
        plan.connection.cursor().execute("INSERT INTO effects VALUES (1)")
        if self.fails:
            raise self.fails
        return self.result

    def operation(self, **options: Any) -> Operation:
        return Operation("change", self.plan, self.apply, **options)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, new_store: Callable[[str], str]) -> Iterator[Any]:
    address = new_store(request.param)
    if request.param == "sqlite":
        yield SqliteStore(address, busy_seconds=0.3)
    else:
        postgres = PostgresStore(address)
        yield postgres
        postgres.close()


@pytest.fixture
def owner() -> Owner:
    return Owner()


@pytest.fixture
def crib(store: Any, owner: Owner) -> Crib:
    crib = Crib(store, "?" if isinstance(store, SqliteStore) else "%s", owner.operation())
    crib.run("CREATE TABLE IF NOT EXISTS effects (one integer)")
    crib.run("DELETE FROM effects")
    return crib


def effects(crib: Crib) -> int:
    return len(crib.run("SELECT one FROM effects"))


# ── What a plan depends on ──────────────────────────────────────────────────────────────────
UPDATE = Action("update", "thing/1", "size", 1, 2)


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        # By the actions' origin, where nothing is covered.
        (Owner(), Owner(actions=[Action("update", "thing/1", "size", 5, 6)]), [("size", 1, 5)]),
        # By what is covered, and by nothing else of that object.
        (
            Owner(covers={"thing/1": {"size": 1, "owner": "ada"}}),
            Owner(covers={"thing/1": {"size": 1, "owner": "otto"}}),
            [("owner", "ada", "otto")],
        ),
        (
            Owner(covers={"thing/1": {"owner": "ada"}}),
            Owner(
                covers={"thing/1": {"owner": "otto"}},
                actions=[Action("update", "thing/1", "size", 5, 6)],
            ),
            [("owner", "ada", "otto")],
        ),
        # An origin that nobody covered still counts.
        (
            Owner(covers={"thing/1": {"owner": "ada"}}),
            Owner(
                covers={"thing/1": {"owner": "ada"}},
                actions=[Action("update", "thing/1", "size", 5, 6)],
            ),
            [("size", 1, 5)],
        ),
        # Another object that the plan only looks at.
        (
            Owner(covers={"rate/eur": {"cents": 108}}),
            Owner(covers={"rate/eur": {"cents": 109}}),
            [("cents", 108, 109)],
        ),
        # It refuses now: what it had covered says why.
        (
            Owner(covers={"thing/1": {"size": 1}}),
            Owner(covers={"thing/1": {"size": 2}}, refuses=nothing_to_change("So already.")),
            [("size", 1, 2)],
        ),
        # It refuses before it covers anything.
        (Owner(), Owner(refuses=Problem(404, "gone", "Gone.")), [("plan", "possible", "gone")]),
        # A truth value is no number.
        (
            Owner(covers={"thing/1": {"size": 1}}),
            Owner(covers={"thing/1": {"size": True}}),
            [("size", 1, True)],
        ),
    ],
)
def test_what_moved_is_named(
    crib: Crib, owner: Owner, before: Owner, after: Owner, changed: list[tuple[str, Any, Any]]
) -> None:
    owner.__dict__.update(vars(before))
    plan = crib.plan()
    owner.__dict__.update(vars(after))
    answer = crib.commit(plan)
    assert code(answer) == (409, "state-changed")
    named = json.loads(answer.text)["changed"]
    assert [(each["path"], each["planned"], each["current"]) for each in named] == changed
    assert (crib.status(plan), effects(crib)) == ("not_applied", 0)


@pytest.mark.parametrize(
    "after",
    [
        Owner(covers={"thing/1": {"size": 1.0}}),
        # The actions' other end is not the world: what was approved is what is applied.
        Owner(covers={"thing/1": {"size": 1}}, actions=[Action("update", "thing/1", "size", 1, 9)]),
    ],
)
def test_what_did_not_move_is_applied_as_it_was_planned(
    crib: Crib, owner: Owner, after: Owner
) -> None:
    owner.covers = {"thing/1": {"size": 1}}
    plan = crib.plan(a=1)
    owner.__dict__.update(vars(after) | {"plans": []})
    assert crib.commit(plan, "key-of-the-plan-" + plan["plan_id"]).status == 200
    [given] = owner.plans
    assert given.actions == plan["actions"]
    assert (given.inputs, given.state) == ({"a": 1}, {"thing/1": {"size": 1}})
    assert given.idempotency_key == "key-of-the-plan-" + plan["plan_id"]
    assert effects(crib) == 1


def test_details_are_for_apply_alone(crib: Crib, owner: Owner) -> None:
    owner.actions = Planned([UPDATE], {"etag": '"7"', "at": datetime(2026, 1, 1, tzinfo=UTC)})
    plan = crib.plan()
    assert "etag" not in json.dumps(plan)
    assert crib.commit(plan).status == 200
    assert owner.plans[0].details == {"etag": '"7"', "at": "2026-01-01T00:00:00.000Z"}


# ── What apply does ─────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("fails", "heard", "status"),
    [
        (Problem(422, "closed", "The books are closed."), (422, "closed"), "not_applied"),
        (Conflict([Change("size", 1, 3, "thing/1")]), (409, "state-changed"), "not_applied"),
        (Conflict(), (409, "state-changed"), "not_applied"),
        (Problem(410, "expired", "Too late."), (410, "expired"), "expired"),
        (Later("Busy.", 7), (503, "try-again"), "open"),
        (Problem(500, "broken", "Broken."), (500, "broken"), "open"),
        (RuntimeError("a fault of the owner's"), (500, "internal-error"), "open"),
    ],
)
def test_a_refusal_in_apply_leaves_nothing_behind(
    crib: Crib, owner: Owner, fails: Exception, heard: tuple[int, str], status: str
) -> None:
    plan = crib.plan()
    owner.fails = fails
    first = crib.commit(plan, plan["plan_id"])
    assert code(first) == heard
    assert (crib.status(plan), effects(crib)) == (status, 0)
    owner.fails = None
    again = crib.commit(plan, plan["plan_id"])
    if status == "open":
        assert (again.status, effects(crib)) == (200, 1)
    else:
        assert (again.text, again.headers["Idempotent-Replayed"]) == (first.text, "true")
        assert code(crib.commit(plan)) == heard


def test_a_fault_is_logged_without_the_token(
    crib: Crib, owner: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    plan = crib.plan()
    owner.fails = RuntimeError("a fault of the owner's")
    with caplog.at_level(logging.ERROR):
        answer = crib.commit(plan)
    assert "a fault of the owner's" in caplog.text
    assert plan["plan_token"] not in caplog.text + answer.text + repr(owner.plans)


@pytest.mark.parametrize("how", ["commit", "rollback", "__exit__"])
def test_an_owner_cannot_end_the_transaction(crib: Crib, owner: Owner, how: str) -> None:
    def apply(plan: Plan) -> Any:
        owner.apply(plan)
        getattr(plan.connection, how)(*([None] * 3 if how == "__exit__" else []))
        return {}

    hasty = Crib(crib.store, crib.mark, Operation("change", owner.plan, apply))
    plan = hasty.plan()
    assert hasty.commit(plan).status in (500, 503)
    assert (hasty.status(plan), effects(crib)) == ("open", 0)


def test_a_pool_in_autocommit_mode_is_one_transaction_too(
    new_store: Callable[[str], str], owner: Owner
) -> None:
    address = new_store("postgresql")
    with ConnectionPool(address, kwargs={"autocommit": True}, min_size=1) as pool:
        crib = Crib(PostgresStore(pool), "%s", owner.operation())
        crib.run("CREATE TABLE effects (one integer)")
        plan, owner.fails = crib.plan(), RuntimeError("a fault of the owner's")
        assert crib.commit(plan).status == 500
        assert (crib.status(plan), effects(crib)) == ("open", 0)


@pytest.mark.parametrize("result", [None, {"cents": 2**60}, {"a": float("nan")}, {"a": object()}])
def test_a_result_is_json_that_every_reader_agrees_on(
    crib: Crib, owner: Owner, result: Any
) -> None:
    owner.result = result
    plan = crib.plan()
    assert crib.commit(plan).status == 500
    assert (crib.status(plan), effects(crib)) == ("open", 0)


# ── Time ────────────────────────────────────────────────────────────────────────────────────
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


# ── Keys and tokens ─────────────────────────────────────────────────────────────────────────
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


# ── Mistakes of an owner, found early ───────────────────────────────────────────────────────
@pytest.mark.parametrize(
    "actions",
    [
        [UPDATE] * 21,
        [{"op": "update"}],
        [Action("update", "thing/1", "size", object(), 2)],
        [Action("update", "thing/1", "size", 2**60, 2)],
    ],
)
def test_a_plan_that_cannot_be_shown_is_no_plan(crib: Crib, owner: Owner, actions: Any) -> None:
    owner.actions = actions
    assert code(crib.dry_run()) == (500, "internal-error")


@pytest.mark.parametrize(
    ("actions", "words"),
    [
        (None, "plan() returned NoneType, not a list of Actions, or Planned"),
        ("words", "plan() returned str, not a list"),
        ([{"op": "update"}], "plan() returned dict where an Action belongs"),
        ([UPDATE] * 21, "plan() returned 21 actions of 20 at most"),
    ],
)
def test_the_log_says_what_a_plan_has_to_be(
    crib: Crib, owner: Owner, actions: Any, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    owner.actions = actions
    assert crib.dry_run().status == 500
    assert words in caplog.text


def test_no_actions_say_that_nothing_is_to_change(crib: Crib, owner: Owner) -> None:
    plan = crib.plan()
    owner.actions = []
    assert code(crib.dry_run()) == (422, "nothing-to-change")
    assert code(crib.commit(plan)) == (409, "state-changed")


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda store, one: Credentials(app="short", agent="other-token"), "two different tokens"),
        (lambda store, one: Credentials(app="same-token", agent="same-token"), "two different"),
        (lambda store, one: Operation("a/b", one.plan, one.apply), "address"),
        (lambda store, one: Operation("plans", one.plan, one.apply), "taken"),
        (lambda store, one: Crib(store, "?", one, one), "two operations"),
        (lambda store, one: Crib(store, "?", one, key_retention_seconds=60), "keys are kept"),
        (lambda store, one: Crib(store, "?", one, plan_retention_seconds=60), "plans are kept"),
    ],
)
def test_a_target_that_cannot_work_is_not_built(
    store: Any, owner: Owner, build: Callable[[Any, Operation], Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        build(store, owner.operation())


def test_a_coroutine_is_no_plan(owner: Owner) -> None:
    async def later(inputs: dict[str, Any], state: State) -> Any:
        return [UPDATE]

    with pytest.raises(TypeError, match="no async def"):
        Operation("change", later, owner.apply)  # type: ignore[arg-type]


def test_credentials_are_never_shown() -> None:
    shown = repr(Credentials(app="app-token-secret", agent="agent-token-secret"))
    assert "secret" not in shown


def test_an_owner_may_know_callers_by_other_means(store: Any, owner: Owner) -> None:
    class Callers:
        def principal(self, authorization: str | None) -> str | None:
            return {"Key app": "app", "Key agent": "agent"}.get(authorization or "")

    target = Target("crib", store, Callers(), [owner.operation()])
    crib = Crib(store, "?", owner.operation())
    crib.target = target
    assert crib.ask("POST", "/change/dry_run", {}, authorization="Key agent").status == 200
    assert crib.ask("POST", "/change/dry_run", {}).status == 401


def test_a_store_that_is_away_is_told(crib: Crib, monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> Any:
        raise StoreAway("gone")

    monkeypatch.setattr(crib.target, "store", type("Away", (), {"transaction": away}))
    answer = crib.dry_run()
    assert (code(answer), answer.headers["Retry-After"]) == ((503, "store-away"), "1")


def test_a_file_that_stays_locked_is_away(tmp_path: Path, owner: Owner) -> None:
    store = SqliteStore(tmp_path / "file", busy_seconds=0.1)
    crib = Crib(store, "?", owner.operation())
    with store.transaction():
        assert code(crib.dry_run()) == (503, "store-away")
    assert crib.dry_run().status == 200


def test_a_trial_leaves_nothing(crib: Crib, owner: Owner) -> None:
    def plan_by_doing(inputs: dict[str, Any], state: State) -> Any:
        with state.trial():
            state.connection.cursor().execute("INSERT INTO effects VALUES (2)")
        return [UPDATE]

    doing = Crib(crib.store, crib.mark, Operation("change", plan_by_doing, owner.apply))
    plan = doing.plan()
    assert effects(crib) == 0
    assert (doing.commit(plan).status, effects(crib)) == (200, 1)


def test_what_a_plan_writes_in_a_dry_run_is_undone(crib: Crib, owner: Owner) -> None:
    def plan_that_writes(inputs: dict[str, Any], state: State) -> Any:
        state.connection.cursor().execute("INSERT INTO effects VALUES (2)")
        with state.trial():
            state.connection.cursor().execute("INSERT INTO effects VALUES (3)")
        return [UPDATE]

    writing = Crib(crib.store, crib.mark, Operation("change", plan_that_writes, owner.apply))
    plan = writing.plan()
    assert (plan["actions"], effects(crib)) == ([UPDATE.body()], 0)


# ── Texts ───────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b'{"a":1,"a":2}', 400),
        (b'{"a":1,"\\u0061":2}', 400),
        (b'{"a":NaN}', 400),
        (b'{"a":1}x', 400),
        (b"\xef\xbb\xbf{}", 400),
        (b'{"a":"\xff"}', 400),
        (b"[" * 30_000, 400),
        (b'{"a":' + b"[" * 32 + b"]" * 32 + b"}", 400),
        (b"[]", 422),
        (b'{"a":"\\u0000"}', 422),
        (b'{"\\ud800":1}', 422),
        (b'{"a":9007199254740992}', 422),
        (b'{"a":1e999}', 422),
        (b'{"a":1e17}', 422),
        (b'{"a":' + b"9" * 5000 + b"}", 422),
    ],
)
def test_what_two_readers_may_differ_on_is_refused(raw: bytes, status: int) -> None:
    with pytest.raises(Problem) as refused:
        parse_object(raw)
    assert refused.value.status == status


def test_what_all_readers_agree_on_is_read() -> None:
    text = b'{"a":[1,-0.5,1e3,true,null,"\\ud83d\\ude00"],"":{}}'
    assert parse_object(text) == {"a": [1, -0.5, 1000.0, True, None, "😀"], "": {}}


def test_a_fingerprint_does_not_depend_on_the_order() -> None:
    one = fingerprint("refund", {"a": 1, "b": 2.0}, {"x": {"y": 1}})
    assert one == fingerprint("refund", {"b": 2, "a": 1}, {"x": {"y": 1}})
    assert one != fingerprint("other", {"a": 1, "b": 2}, {"x": {"y": 1}})


def test_values_of_databases_become_json() -> None:
    values = {"at": datetime(2026, 1, 31, 9, 31, 12, 40_999, UTC), "on": date(2026, 1, 31)}
    assert plain(values) == {"at": "2026-01-31T09:31:12.040Z", "on": "2026-01-31"}
    assert plain((Decimal("1.50"), None)) == ["1.50", None]
    assert not same(True, 1)
    with pytest.raises(TypeError, match="no form in JSON"):
        plain({1, 2})


def test_a_schema_points_at_what_it_refuses(crib: Crib, owner: Owner) -> None:
    schema = {"properties": {"a/b": {"type": "integer"}}, "additionalProperties": False}
    strict = Crib(crib.store, crib.mark, owner.operation(schema=schema))
    answer = strict.dry_run(**{"a/b": "x"})
    assert code(answer) == (422, "invalid-request")
    assert json.loads(answer.text)["errors"][0]["pointer"] == "/a~1b"
    dated = owner.operation(schema={"properties": {"day": {"type": "string", "format": "date"}}})
    answer = Crib(crib.store, crib.mark, dated).dry_run(day="banana")
    assert json.loads(answer.text)["errors"][0]["pointer"] == "/day"
    assert strict.ask("POST", "/change/dry_run", {}, authorization=f"Bearer {AGENT}").status == 200


def test_an_owners_refusal_goes_out_as_it_is(crib: Crib, owner: Owner) -> None:
    owner.refuses = not_allowed(("/size", "is too much"))
    answer = crib.dry_run()
    assert json.loads(answer.text)["errors"] == [{"pointer": "/size", "detail": "is too much"}]
    assert json.loads(answer.text)["type"] == "urn:problem:crib:invalid-request"
