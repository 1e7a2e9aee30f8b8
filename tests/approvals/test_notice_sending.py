"""One letter at a real mail server: what each answer makes of it, and who is told at all."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from approvals.models import Channel, Notice
from approvals.notices import channels, sending, smtp
from audit import actors
from plans.clock import clock
from plans.delivering import SCHEDULE
from plans.models import Plan
from plans.status import Status
from tests.approvals.mail_server import MailServer, configure, nobody_listens
from tests.approvals.paper_plans import MakePlan
from tests.approvals.queued_notices import queued

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)


@pytest.fixture(autouse=True)
def _in_the_tests_transaction(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.GATEWAY_ALLOW_IN_TRANSACTION = True
    monkeypatch.setattr(smtp, "TOTAL_SECONDS", 0.8)


@pytest.fixture
def server(settings: Any) -> Iterator[MailServer]:
    with MailServer() as running:
        configure(settings, running.port)
        yield running


@pytest.fixture
def mail(billing: Any, ada: User) -> Channel:
    channels.switch(Group.objects.get(name="reviewers"), "mail", True, actor=actors.OPERATOR)
    return Channel.objects.get()


def over(plan: Plan, to: Status = Status.REJECTED) -> None:
    Plan.objects.filter(pk=plan.pk).update(
        status=to, token=None, commit_body=None, closed_at=clock()
    )


def test_a_letter_arrives(
    server: MailServer, mail: Channel, ada: User, make_plan: MakePlan
) -> None:
    row = queued(mail, make_plan(), ada)
    assert list(sending.due()) == [mail.pk]
    assert sending.send_notices(mail.pk) == 1
    (letter,) = server.mail
    assert (letter["To"], letter["From"]) == ("ada@example.com", "countersign@localhost")
    row.refresh_from_db()
    assert (row.status, row.attempts.get().http_status) == ("delivered", 250)
    assert (sending.send_notices(mail.pk), list(sending.due()), len(server.letters)) == (0, [], 1)


SERVERS = {
    # mode: outcome, code, fault, what becomes of the notice, and whether the channel pauses
    "hang": ("not_sent", None, "server: it did not answer in time", "waiting", True),
    "dribble": ("not_sent", None, "server: it did not answer in time", "waiting", True),
    "closed": ("not_sent", 554, "server: it refused", "waiting", True),
    "refuse-sender": ("no_answer", 550, "server: it refused", "waiting", True),
    "refuse-person": ("refused", 550, "recipient: refused by the mail server", "given_up", False),
    "busy": ("refused", 451, "recipient: refused by the mail server", "waiting", False),
    "refuse-data": ("refused", 554, "content: refused by the mail server", "given_up", False),
    "hang-up": ("no_answer", None, "server: it hung up", "waiting", True),
    "hang-after": ("no_answer", None, "server: it did not answer in time", "waiting", True),
}


@pytest.mark.parametrize("mode", SERVERS)
def test_what_the_mail_server_says_is_written_down(
    server: MailServer, mail: Channel, ada: User, make_plan: MakePlan, mode: str
) -> None:
    server.plays(mode)
    outcome, code, fault, becomes, pauses = SERVERS[mode]
    row, began = queued(mail, make_plan(), ada), time.monotonic()
    assert sending.send_notices(mail.pk) == 0
    assert time.monotonic() - began < 3
    row.refresh_from_db()
    mail.refresh_from_db()
    attempt = row.attempts.get()
    assert (attempt.outcome, attempt.http_status, attempt.fault) == (outcome, code, fault)
    assert row.status == becomes
    assert (mail.not_before is not None, mail.lease) == (pauses, None)
    assert mail.on_since is not None
    if becomes == "waiting":
        assert row.next_attempt_at is not None
        wait = row.next_attempt_at - clock()
        assert wait == pytest.approx(timedelta(seconds=15 if pauses else 5), abs=SECOND)


def test_without_starttls_no_letter_leaves(
    server: MailServer, settings: Any, mail: Channel, ada: User, make_plan: MakePlan
) -> None:
    settings.MAILERS["default"]["OPTIONS"]["use_tls"] = True
    row = queued(mail, make_plan(), ada)
    sending.send_notices(mail.pk)
    assert row.attempts.get().fault == "server: it offers no STARTTLS, or no sign-in"
    assert server.letters == []


def test_nobody_listens(settings: Any, mail: Channel, ada: User, make_plan: MakePlan) -> None:
    configure(settings, nobody_listens())
    row = queued(mail, make_plan(), ada)
    sending.send_notices(mail.pk)
    assert row.attempts.get().fault == "server: Connection refused"


def test_one_bad_address_holds_up_nobody(
    server: MailServer, mail: Channel, ada: User, grace: User, make_plan: MakePlan
) -> None:
    User.objects.filter(pk=ada.pk).update(email="ada@exa mple.com")
    plan = make_plan()
    bad, _ = queued(mail, plan, ada), queued(mail, plan, grace)
    sending.send_notices(mail.pk)
    sending.send_notices(mail.pk)
    assert [letter["To"] for letter in server.mail] == ["grace@example.com"]
    bad.refresh_from_db()
    assert (bad.status, bad.attempts.get().fault) == ("given_up", "address: it is not one")


def test_a_mail_server_that_works_again_is_well_again(
    server: MailServer, mail: Channel, ada: User, make_plan: MakePlan
) -> None:
    server.plays("hang-up", "take")
    row = queued(mail, make_plan(), ada)
    sending.send_notices(mail.pk)
    assert list(sending.due()) == []
    Channel.objects.update(not_before=None)
    Notice.objects.update(next_attempt_at=clock())
    assert sending.send_notices(mail.pk) == 1
    mail.refresh_from_db()
    assert mail.failing_since is None
    assert [a.outcome for a in row.attempts.order_by("number")] == ["no_answer", "delivered"]
    assert len(server.mail) == 1


def test_three_days_of_failure_end_a_letter_and_no_channel(
    server: MailServer, mail: Channel, ada: User, make_plan: MakePlan
) -> None:
    server.plays("busy")
    row = queued(mail, make_plan(), ada, tries=len(SCHEDULE) - 1)
    sending.send_notices(mail.pk)
    row.refresh_from_db()
    mail.refresh_from_db()
    assert (row.status, mail.on_since is not None, mail.lease) == ("given_up", True, None)


# ── what need not be told any more ───────────────────────────────────────────────────────────


def _leaves(ada: User) -> None:
    ada.groups.clear()


def _is_silent(ada: User) -> None:
    channels.want_mail(ada, False, actor=actors.person(ada))


def _is_gone(ada: User) -> None:
    User.objects.filter(pk=ada.pk).update(is_active=False)


def _all_is_over(ada: User) -> None:
    for plan in Plan.objects.all():
        over(plan)


def _too_late(ada: User) -> None:
    Plan.objects.update(decide_by=clock())


@pytest.mark.parametrize("happens", [_leaves, _is_silent, _is_gone, _all_is_over, _too_late])
def test_what_nobody_needs_to_know_is_cancelled_at_the_send(
    server: MailServer, mail: Channel, ada: User, make_plan: MakePlan, happens: Any
) -> None:
    row = queued(mail, make_plan(), ada)
    happens(ada)
    assert sending.send_notices(mail.pk) == 0
    row.refresh_from_db()
    assert (row.status, server.connections) == ("cancelled", 0)


@pytest.mark.parametrize(
    ("tried", "sent"),
    [("", 0), ("refused", 0), ("not_sent", 0), ("delivered", 1), ("no_answer", 1), ("lost", 1)],
)
def test_the_end_is_told_to_who_may_have_heard_of_the_beginning(
    server: MailServer, mail: Channel, ada: User, make_plan: MakePlan, tried: str, sent: int
) -> None:
    plan = make_plan()
    first = queued(mail, plan, ada)
    if tried:
        first.attempts.create(number=1, outcome=tried)
    over(plan)
    last = queued(mail, plan, ada, moment="over")
    assert sending.send_notices(mail.pk) == sent
    first.refresh_from_db()
    last.refresh_from_db()
    assert first.status == "cancelled"
    assert last.status == ("delivered" if sent else "cancelled")
    assert [letter["Subject"][:3] for letter in server.mail] == ["Re:"] * sent


@pytest.mark.parametrize(("status", "sent"), [("unresolved", 1), ("unknown", 0), ("committed", 0)])
def test_a_person_is_called_to_the_target_while_one_is_needed(
    server: MailServer, mail: Channel, ada: User, make_plan: MakePlan, status: str, sent: int
) -> None:
    closed = clock() if status == "committed" else None
    plan = make_plan(status=status, decide_by=clock(), closed_at=closed)
    row = queued(mail, plan, ada, moment="unresolved")
    assert sending.send_notices(mail.pk) == sent
    row.refresh_from_db()
    assert row.status == ("delivered" if sent else "cancelled")
    subjects = [letter["Subject"] for letter in server.mail]
    title = "Refund 480.00 USD on invoice/4412"
    assert subjects == [f"[Countersign] Needs a person: {title}"] * sent


def test_the_end_is_told_to_a_person_who_was_called_in_another_group(
    server: MailServer, mail: Channel, ada: User, make_plan: MakePlan
) -> None:
    """Waiting was never told; the call to the target went by the group of the leads."""
    plan = make_plan(status=Status.UNRESOLVED)
    leads = Group.objects.create(name="others")
    channels.switch(leads, "mail", True, actor=actors.OPERATOR)
    called = queued(Channel.objects.get(group=leads), plan, ada, moment="unresolved")
    called.attempts.create(number=1, outcome="delivered")
    over(plan, Status.COMMITTED)
    queued(mail, plan, ada, moment="over")
    assert sending.send_notices(mail.pk) == 1
