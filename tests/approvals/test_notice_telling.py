"""From the trail to notices: to whom, when, and never twice for a plan."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import transaction

from approvals.decisions import Ballot, decide
from approvals.models import Channel, Notice, NoticedUpTo
from approvals.notices import channels, sending, telling
from audit import actors
from audit.actions import Action
from audit.recording import record
from plans.lifecycle import Verb
from plans.management.commands.sweep import Sweeper
from plans.models import Agent, Plan, Target
from plans.resolving import checked
from tests.approvals.mail_server import MailServer, configure, nobody_listens, text_of, wait_until
from tests.plans.receiver import Receiver
from tests.plans.story import approved, fresh, moved, pending

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("refund")]
HOOK = "http://127.0.0.1:1/chat"


@pytest.fixture
def reviewers(settings: Any, ada: User, dana: User, billing: Target) -> Group:
    """The group of ada, and of dana who owns the agent; told by mail and by webhook."""
    configure(settings, nobody_listens())
    group = Group.objects.get(name="reviewers")
    channels.switch(group, "mail", True, actor=actors.OPERATOR)
    channels.name_webhook(group, HOOK, internal=True, actor=actors.OPERATOR)
    return group


def told(moment: str = "waits") -> list[str]:
    """Who was, or will be, told: names of people, and `#` of a webhook."""
    rows = Notice.objects.filter(moment=moment)
    names = rows.values_list("person__username", "channel__group__name")
    return sorted(person or f"#{group}" for person, group in names)


def test_who_may_decide_is_told_once_that_it_waits(
    reviewers: Group, support_agent: Agent, charlie: User, mona: User
) -> None:
    pending(support_agent)
    assert telling.tell_all() > 0
    assert told() == ["#reviewers", "ada"]
    assert telling.tell_all() == 0
    NoticedUpTo.objects.update(era=0, xid=0, event_id=0)
    telling.tell_all()
    assert (told(), told("over")) == (["#reviewers", "ada"], [])


def test_how_it_ended_is_told_to_who_was_told_that_it_waits(
    reviewers: Group, support_agent: Agent, ada: User
) -> None:
    plan = pending(support_agent)
    telling.tell_all()
    decide(ada, plan.pk, Ballot("reject", "No", plan.digest))
    telling.tell_all()
    assert told("over") == ["#reviewers", "ada"]
    for row in Notice.objects.filter(moment="waits"):
        assert row.status == "waiting"


def test_a_second_round_is_no_second_notice(reviewers: Group, support_agent: Agent) -> None:
    plan = pending(support_agent)
    telling.tell_all()
    with transaction.atomic():
        record(
            Action.PLAN_REOPENED,
            actors.POLICIES,
            plan.subject(),
            from_status="approved",
            to_status="pending",
        )
    telling.tell_all()
    assert told() == ["#reviewers", "ada"]


def test_nobody_else_is_told(
    reviewers: Group, support_agent: Agent, billing: Target, ada: User, grace: User, otto: User
) -> None:
    """Silent, without an address, gone, in another group; and in two groups it is still one."""
    leads = Group.objects.get(name="leads")
    billing.reviewers.add(leads)
    channels.switch(leads, "mail", True, actor=actors.OPERATOR)
    ada.groups.add(leads)
    channels.want_mail(grace, False, actor=actors.person(grace))
    for name, columns in (("nowhere", {"email": ""}), ("gone", {"is_active": False})):
        person = User.objects.create_user(name, f"{name}@example.com")
        person.groups.add(reviewers)
        User.objects.filter(pk=person.pk).update(**columns)
    pending(support_agent)
    telling.tell_all()
    assert told() == ["#reviewers", "ada"]


def test_what_is_over_before_anybody_was_told_is_not_told(
    reviewers: Group, support_agent: Agent, ada: User
) -> None:
    plan = pending(support_agent)
    decide(ada, plan.pk, Ballot("reject", "No", plan.digest))
    telling.tell_all()
    assert not Notice.objects.exists()


# ── a person has to look at the target (T-10) ────────────────────────────────────────────────
LOST: tuple[Verb, ...] = (Verb.START_ATTEMPT, Verb.LOSE_TRACK)


def walked(plan: Plan, *verbs: Verb) -> Plan:
    """Along these arrows, and the trail is walked after each."""
    for verb in verbs:
        moved(plan, verb)
        telling.tell_all()
    return fresh(plan)


@pytest.mark.parametrize("told_before", [False, True])
def test_a_lost_outcome_is_told_once_and_then_how_it_ended(
    reviewers: Group, support_agent: Agent, ada: User, charlie: User, told_before: bool
) -> None:
    """Also to those who never heard that it waited: it was approved before any notice was made."""
    plan = pending(support_agent)
    if told_before:
        telling.tell_all()
    plan = walked(approved(ada, plan), *LOST)
    assert (told(), told("unresolved")) == (["#reviewers", "ada"] * told_before, [])
    walked(plan, Verb.GIVE_UP)
    NoticedUpTo.objects.update(era=0, xid=0, event_id=0)
    telling.tell_all()
    assert (told("unresolved"), told("over")) == (["#reviewers", "ada"], [])
    checked(plan.pk, applied=True, note="It is there.", actor=actors.person(ada))
    telling.tell_all()
    assert (told("unresolved"), told("over")) == (["#reviewers", "ada"], ["#reviewers", "ada"])


@pytest.mark.parametrize("end", [Verb.COMMIT, Verb.CONFLICT, Verb.FAIL, Verb.EXPIRE])
def test_an_outcome_that_the_target_gave_needs_nobody(
    reviewers: Group, support_agent: Agent, ada: User, end: Verb
) -> None:
    walked(approved(ada, pending(support_agent)), *LOST, end)
    assert not Notice.objects.exists()


def test_what_was_found_before_anybody_was_told_is_not_told(
    reviewers: Group, support_agent: Agent, ada: User
) -> None:
    plan = walked(approved(ada, pending(support_agent)), *LOST)
    moved(plan, Verb.GIVE_UP)
    checked(plan.pk, applied=False, note="It is not.", actor=actors.person(ada))
    telling.tell_all()
    assert not Notice.objects.exists()


def test_without_a_mail_server_nobody_waits_for_mail(
    reviewers: Group, support_agent: Agent, settings: Any
) -> None:
    settings.SMTP_HOST = None
    pending(support_agent)
    telling.tell_all()
    assert told() == ["#reviewers"]


def test_nothing_is_told_that_was_before_or_while_it_was_off(
    support_agent: Agent, ada: User, billing: Target
) -> None:
    group = Group.objects.get(name="reviewers")
    pending(support_agent)
    telling.tell_all()
    assert not NoticedUpTo.objects.exists()
    channels.name_webhook(group, HOOK, internal=True, actor=actors.OPERATOR)
    telling.tell_all()
    channels.switch(group, "webhook", False, actor=actors.OPERATOR)
    pending(support_agent)
    telling.tell_all()
    channels.switch(group, "webhook", True, actor=actors.OPERATOR)
    plan = pending(support_agent)
    telling.tell_all()
    assert list(Notice.objects.values_list("plan_id", flat=True)) == [plan.pk]


# ── all of it: the sweeper, a mail server and a receiver ─────────────────────────────────────


def looked(sweepers: list[Sweeper]) -> bool:
    """Each of them took a look."""
    for sweeper in sweepers:
        sweeper.look()
    return True


def test_a_mail_server_that_hangs_changes_nothing_elsewhere(
    reviewers: Group, support_agent: Agent, ada: User, settings: Any
) -> None:
    """Decisions and the chat go on beside it; when it is well again, its letters leave (B-5)."""
    with MailServer("hang") as server, Receiver() as chat:
        configure(settings, server.port, timeout=2)
        channels.name_webhook(reviewers, chat.url, internal=True, actor=actors.OPERATOR)
        sweeper = Sweeper(2)

        def swept(done: Any) -> None:
            wait_until(lambda: looked([sweeper]) and done())

        first = pending(support_agent)
        swept(lambda: server.connections and chat.messages)
        decided = decide(ada, first.pk, Ballot("reject", "No", first.digest))
        assert decided.status == "rejected"
        swept(lambda: len(chat.messages) == 2)
        assert server.letters == []
        server.plays("take")
        second = pending(support_agent)
        Channel.objects.update(not_before=None)
        swept(lambda: server.letters)
        sweeper.finish()
    (letter,) = server.mail
    assert second.plan_id in text_of(letter)
    assert letter["To"] == "ada@example.com"
    rows = Notice.objects.filter(plan=first, person=ada).order_by("moment")
    assert {row.status for row in rows} <= {"cancelled", "waiting"}
    bodies = [message.content["text"] for message in chat.messages]
    assert [first.plan_id in body for body in bodies[:2]] == [True, True]
    assert len({message.id for message in chat.messages}) == len(bodies)


def test_any_number_of_sweepers_tells_everybody_once(
    reviewers: Group, support_agent: Agent, settings: Any
) -> None:
    with MailServer() as server, Receiver() as chat:
        configure(settings, server.port)
        channels.name_webhook(reviewers, chat.url, internal=True, actor=actors.OPERATOR)
        pending(support_agent)
        sweepers = [Sweeper(2), Sweeper(2)]
        for _ in range(3):
            for sweeper in sweepers:
                sweeper.look()
        wait_until(lambda: looked(sweepers) and server.letters and chat.messages)
        for sweeper in sweepers:
            sweeper.finish()
        assert (len(server.letters), len(chat.messages)) == (1, 1)
    assert set(Notice.objects.values_list("status", "tries")) == {("delivered", 1)}


def test_the_sweeper_does_it_in_a_lane_of_its_own(reviewers: Group, support_agent: Agent) -> None:
    from plans.sweeper import EVERY_SECOND, Lane, due_work

    assert sending.tell_people in {work.act for work in EVERY_SECOND}
    plan: Plan = pending(support_agent)
    sending.tell_people(100)
    found = [work for work in due_work() if work.act is sending.send_notices]
    assert {work.lane for work in found} == {Lane.NOTICES}
    assert len(found) == Channel.objects.count() == 2
    assert Notice.objects.filter(plan=plan).count() == 2
