"""The table of arrows: every status and verb, no change without an event (S-1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.db import IntegrityError, connection, transaction

from audit import actors
from audit.models import Event
from plans.errors import CommitInFlight, NotDecidable
from plans.lifecycle import TRANSITIONS, Verb, allowed, transition
from plans.models import Attempt, Intent, Plan, Replan
from plans.status import REPLANNED, TERMINAL, Status

type Make = Callable[..., Plan]
S = Status

# The contract's own table, written down a second time: what each status can go to.
CONTRACT: dict[Status, set[Status]] = {
    S.VERIFYING: {S.PENDING, S.MISMATCHED, S.SUPERSEDED, S.EXPIRED, S.STALE, S.ABANDONED},
    S.PENDING: {
        S.APPROVED,
        S.REJECTED,
        S.CHANGES_REQUESTED,
        S.EXPIRED,
        S.STALE,
        S.SUPERSEDED,
        S.ABANDONED,
    },
    S.APPROVED: {S.COMMITTING, S.REJECTED, S.EXPIRED, S.STALE, S.ABANDONED, S.PENDING},
    S.COMMITTING: {
        S.COMMITTED,
        S.CONFLICTED,
        S.EXPIRED,
        S.FAILED,
        S.UNKNOWN,
        S.REJECTED,
        S.STALE,
        S.PENDING,
        S.ABANDONED,
        S.COMMITTING,
    },
    S.UNKNOWN: {S.COMMITTING, S.COMMITTED, S.CONFLICTED, S.EXPIRED, S.FAILED, S.UNRESOLVED},
    S.UNRESOLVED: {S.COMMITTED, S.FAILED},
    **{status: set() for status in TERMINAL},
}
UNSENT_ONLY = {S.REJECTED, S.STALE, S.PENDING, S.ABANDONED}


def _follow(plan: Plan, verb: Verb) -> Plan:
    with transaction.atomic():
        return transition(Plan.objects.locked(plan.pk), verb, actor=actors.COMMITTER)


def _attempted(plan: Plan, outcome: str) -> Plan:
    Attempt.objects.create(plan=plan, number=1, lease_until=plan.expires_at, outcome=outcome)
    return plan


def test_the_table_has_exactly_the_contracts_arrows() -> None:
    drawn: dict[Status, set[Status]] = {status: set() for status in Status}
    for arrow in TRANSITIONS.values():
        for source in arrow.sources:
            drawn[source].add(arrow.to)
    assert drawn == CONTRACT


def test_a_commit_under_way_is_taken_back_only_while_nothing_may_have_been_sent() -> None:
    unsent = {arrow.to for arrow in TRANSITIONS.values() if arrow.unsent_from}
    assert unsent == UNSENT_ONLY
    for arrow in TRANSITIONS.values():
        assert arrow.unsent_from <= {S.COMMITTING}
        if arrow.to in UNSENT_ONLY and S.COMMITTING in arrow.sources:
            assert S.COMMITTING in arrow.unsent_from


@pytest.mark.parametrize("status", Status)
@pytest.mark.django_db
def test_every_status_meets_every_verb(make_plan: Make, status: Status) -> None:
    for verb, arrow in TRANSITIONS.items():
        plan = make_plan(status)
        if status in arrow.sources:
            _it_follows(plan, verb)
        else:
            _it_stays(plan, verb)


def _it_follows(plan: Plan, verb: Verb) -> None:
    arrow, source = TRANSITIONS[verb], plan.status
    assert allowed(plan, verb)
    moved = _follow(plan, verb)
    stored = Plan.objects.get(pk=plan.pk)
    assert moved.status == stored.status == arrow.to
    event = Event.objects.filter(plan_id=plan.plan_id, action=arrow.action).get()
    assert (event.from_status, event.to_status) == (source, arrow.to)
    assert (stored.status_at, stored.closed_at is not None) == (event.at, arrow.to in TERMINAL)
    assert Replan.objects.filter(plan=plan).exists() == (arrow.to in REPLANNED)


def _it_stays(plan: Plan, verb: Verb) -> None:
    assert not allowed(plan, verb)
    with pytest.raises(NotDecidable):
        _follow(plan, verb)
    assert Plan.objects.get(pk=plan.pk).status == plan.status
    assert not Event.objects.filter(plan_id=plan.plan_id).exists()


@pytest.mark.parametrize("verb", [v for v, arrow in TRANSITIONS.items() if arrow.unsent_from])
@pytest.mark.parametrize("outcome", ["open", "unknown", "retry_later"])
@pytest.mark.django_db
def test_an_attempt_that_may_have_been_sent_bars_the_way_back(
    make_plan: Make, verb: Verb, outcome: str
) -> None:
    plan = _attempted(make_plan(S.COMMITTING), outcome)
    assert not allowed(plan, verb)
    with pytest.raises(CommitInFlight):
        _follow(plan, verb)
    assert Plan.objects.get(pk=plan.pk).status == S.COMMITTING


@pytest.mark.parametrize("verb", [v for v, arrow in TRANSITIONS.items() if arrow.unsent_from])
@pytest.mark.django_db
def test_an_attempt_that_never_left_bars_nothing(make_plan: Make, verb: Verb) -> None:
    plan = _attempted(make_plan(S.COMMITTING), "not_sent")
    assert _follow(plan, verb).status == TRANSITIONS[verb].to


@pytest.mark.parametrize("status", [S.COMMITTING, S.UNKNOWN, S.UNRESOLVED])
@pytest.mark.django_db
def test_a_plan_in_flight_says_so_to_whoever_wants_to_decide(
    make_plan: Make, status: Status
) -> None:
    plan = _attempted(make_plan(status), "unknown")
    with pytest.raises(CommitInFlight) as refusal:
        _follow(plan, Verb.REJECT)
    assert refusal.value.members == {"plan_id": plan.plan_id, "plan_status": status}


@pytest.mark.django_db
def test_secrets_end_with_the_plan(make_plan: Make) -> None:
    plan = _follow(make_plan(S.PENDING, commit_body=b"x"), Verb.REJECT)
    stored = Plan.objects.get(pk=plan.pk)
    assert (stored.token, stored.commit_body, stored.next_attempt_at) == (None, None, None)
    assert stored.token_sha256


@pytest.mark.django_db
def test_an_unresolved_plan_keeps_its_secrets_and_stops_by_itself(make_plan: Make) -> None:
    columns = dict.fromkeys(("next_attempt_at", "next_read_at"), "2026-03-14T00:00:00Z")
    _follow(make_plan(S.UNKNOWN, commit_body=b"x", **columns), Verb.GIVE_UP)
    stored = Plan.objects.get()
    assert stored.token is not None
    assert stored.commit_body is not None
    assert (stored.next_attempt_at, stored.next_read_at) == (None, None)


@pytest.mark.django_db(transaction=True)
def test_a_transition_needs_its_transaction(make_plan: Make) -> None:
    with pytest.raises(RuntimeError, match="transaction"):
        transition(make_plan(S.PENDING), Verb.APPROVE, actor=actors.COMMITTER)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("verb", [Verb.APPROVE, Verb.EXPIRE, Verb.REQUEST_CHANGES])
def test_no_event_no_change(make_plan: Make, verb: Verb, full_trail: None) -> None:
    """FM-53: a trail that cannot be written stops the transition with all that hangs on it."""
    plan = make_plan(S.PENDING)
    with pytest.raises(IntegrityError, match="disk_full"):
        _follow(plan, verb)
    stored = Plan.objects.get(pk=plan.pk)
    assert (stored.status, stored.token is None) == (S.PENDING, False)
    assert not Replan.objects.exists()


@pytest.fixture
def full_trail() -> Iterator[None]:
    """A trail that takes no row more."""
    alter = "ALTER TABLE audit_event"
    with connection.cursor() as cursor:
        cursor.execute(f"{alter} ADD CONSTRAINT disk_full CHECK (false) NOT VALID")
        yield
        cursor.execute(f"{alter} DROP CONSTRAINT disk_full")


@pytest.mark.django_db(transaction=True)
def test_the_event_goes_when_the_change_goes(make_plan: Make) -> None:
    plan = make_plan(S.PENDING)
    with transaction.atomic():
        transition(Plan.objects.locked(plan.pk), Verb.APPROVE, actor=actors.COMMITTER)
        transaction.set_rollback(True)
    assert Plan.objects.get(pk=plan.pk).status == S.PENDING
    assert not Event.objects.filter(plan_id=plan.plan_id).exists()


@pytest.mark.django_db
def test_a_stale_copy_cannot_move_the_plan(make_plan: Make) -> None:
    plan = make_plan(S.PENDING)
    stale = Plan.objects.with_names().get(pk=plan.pk)
    _follow(plan, Verb.REJECT)
    with pytest.raises(RuntimeError, match="not as its guard says"), transaction.atomic():
        transition(stale, Verb.APPROVE, actor=actors.COMMITTER)


@pytest.mark.parametrize("status", [Intent.Status.ABANDONED, Intent.Status.SETTLED])
@pytest.mark.django_db
def test_an_intent_that_is_over_is_not_planned_again(make_plan: Make, status: str) -> None:
    plan = make_plan(S.UNKNOWN)
    joined = Plan.objects.locked(plan.pk)
    Intent.objects.filter(pk=plan.intent_id).update(status=status)
    # The joined intent is older than its row, as it is after a wait for the lock.
    transition(joined, Verb.CONFLICT, actor=actors.COMMITTER)
    assert not Replan.objects.exists()


@pytest.mark.django_db
def test_requested_changes_go_to_the_agent_whatever_waited(make_plan: Make) -> None:
    plan = make_plan(S.PENDING)
    waiting = Replan.objects.create(intent=plan.intent, cause="person", mode="server")
    locked = Plan.objects.locked(plan.pk)
    transition(
        locked, Verb.REQUEST_CHANGES, actor=actors.COMMITTER, replan_reason="only half of it"
    )
    waiting.refresh_from_db()
    assert waiting.status == Replan.Status.CANCELLED
    replan = Replan.objects.get(plan=plan)
    assert (replan.mode, replan.reason, replan.status) == ("agent", "only half of it", "queued")


@pytest.mark.django_db
def test_a_rejection_ends_the_fresh_plan_that_was_being_made(make_plan: Make) -> None:
    plan = make_plan(S.PENDING)
    waiting = Replan.objects.create(intent=plan.intent, cause="person", mode="server")
    _follow(plan, Verb.REJECT)
    waiting.refresh_from_db()
    assert waiting.status == Replan.Status.CANCELLED


@pytest.mark.parametrize(
    ("columns", "parked"),
    [({}, True), ({"approvals_given": 1}, False), ({"round": 2}, False)],
)
@pytest.mark.django_db
def test_what_nobody_attended_to_three_times_is_parked(
    make_plan: Make, columns: dict[str, int], parked: bool
) -> None:
    plan = make_plan(S.PENDING, **columns)
    Intent.objects.filter(pk=plan.intent_id).update(unattended_replans=3)
    _follow(plan, Verb.EXPIRE)
    assert Replan.objects.get().status == ("parked" if parked else "queued")
    assert Intent.objects.get().status == ("parked" if parked else "open")
