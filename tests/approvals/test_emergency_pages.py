"""The emergency stop as people meet it: who may, what every page says, two to release (SEC-30)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client

from audit import actors
from audit.models import Event
from plans import emergency
from plans.clock import clock
from plans.exchanges import Answer, NotSent
from plans.health import forget, note
from plans.models import EmergencyStop, Operation, Plan, Target
from plans.status import Status

pytestmark = pytest.mark.django_db
type MakePlan = Callable[..., Plan]
HTMX = {"HX-Request": "true"}


@pytest.fixture
def sign_in(client: Client) -> Callable[[User], Client]:
    def as_person(person: User) -> Client:
        client.force_login(person)
        return client

    return as_person


def act(client: Client, noun: str, **fields: object) -> int:
    return client.post(f"/stop/{noun}", fields).status_code


def test_a_lead_stops_and_an_operator_and_a_lead_release(
    sign_in: Callable[[User], Client], otto: User, grace: User
) -> None:
    assert act(sign_in(grace), "", reason="The agent runs wild.") == 302
    page = sign_in(otto).get("/settings/").text
    assert "The agent runs wild." in page
    assert "Ask for the release" in page
    assert act(sign_in(otto), "release-request/", reason="Switched off.") == 302
    page = sign_in(otto).get("/settings/").text
    assert ("Somebody else" in page, "Confirm: send again" in page) == (True, False)
    assert act(sign_in(otto), "release/", number=1) == 403
    page = sign_in(grace).get("/settings/").text
    assert ("Switched off." in page, "Confirm: send again" in page) == (True, True)
    assert act(sign_in(grace), "release/", number=1) == 302
    assert emergency.current() is None
    said = Event.objects.filter(action__startswith="emergency.").order_by("id")
    assert list(said.values_list("action", "actor_label")) == [
        ("emergency.stopped", "grace"),
        ("emergency.release_asked", "otto"),
        ("emergency.released", "grace"),
    ]


def test_who_left_the_group_has_not_asked(
    sign_in: Callable[[User], Client], otto: User, grace: User
) -> None:
    act(sign_in(otto), "", reason="Now.")
    act(sign_in(otto), "release-request/", reason="Over.")
    otto.groups.clear()
    assert act(sign_in(grace), "release/", number=1) == 409
    otto.delete()
    assert act(sign_in(grace), "release/", number=1) == 409


@pytest.mark.parametrize("number", ["", "x", "-1", "1.0", "²", "2"])
def test_a_confirmation_names_the_stop_that_was_shown(
    sign_in: Callable[[User], Client], otto: User, grace: User, number: str
) -> None:
    act(sign_in(otto), "", reason="Now.")
    act(sign_in(otto), "release-request/", reason="Over.")
    assert act(sign_in(grace), "release/", number=number) in (409, 422)
    assert emergency.current() is not None


def test_staying_stopped_ends_the_wish(
    sign_in: Callable[[User], Client], otto: User, grace: User
) -> None:
    act(sign_in(otto), "", reason="Now.")
    act(sign_in(otto), "release-request/", reason="Over.")
    assert "Keep it stopped" in sign_in(grace).get("/settings/").text
    act(sign_in(grace), "", reason="It is not.")
    assert act(sign_in(grace), "release/", number=2) == 409
    assert "It is not." in sign_in(otto).get("/settings/").text


def test_an_old_wish_must_be_made_again(
    sign_in: Callable[[User], Client], otto: User, grace: User
) -> None:
    act(sign_in(otto), "", reason="Now.")
    act(sign_in(otto), "release-request/", reason="Over.")
    EmergencyStop.objects.update(release_asked_at=clock() - timedelta(minutes=16))
    assert "Ask for the release" in sign_in(grace).get("/settings/").text


@pytest.mark.parametrize("path", ["/review/", "/replans/", "/unresolved/", "/audit/", "/settings/"])
def test_every_page_says_so_while_it_lasts(
    sign_in: Callable[[User], Client], otto: User, path: str
) -> None:
    client = sign_in(otto)
    assert "Emergency stop." not in client.get(path).text
    emergency.stop("<b>Now</b>\u202e.", actor=actors.OPERATOR)
    page = client.get(path).text
    assert "Emergency stop." in page
    assert "&lt;b&gt;Now&lt;/b&gt;" in page
    assert "\u202e" not in page


def test_a_list_that_is_open_learns_it(
    sign_in: Callable[[User], Client], ada: User, billing: Target
) -> None:
    client = sign_in(ada)
    emergency.stop("Now.", actor=actors.OPERATOR)
    fragment = client.get("/review/", headers=HTMX).text
    assert 'id="stopped"' in fragment
    assert "Emergency stop." in fragment
    # Ada cannot release it: no link leads her there.
    assert "/settings/" not in fragment


def test_nobody_is_told_before_signing_in(client: Client) -> None:
    emergency.stop("Secret reason.", actor=actors.OPERATOR)
    assert "Secret reason." not in client.get("/accounts/login/").text
    assert "Secret reason." not in client.get("/health/ready").text


def test_a_plan_says_that_it_will_wait(
    sign_in: Callable[[User], Client], ada: User, make_plan: MakePlan
) -> None:
    pending, approved = make_plan(), make_plan(status=Status.APPROVED, approved_at=clock())
    client = sign_in(ada)
    before = client.get(f"/plans/billing/{pending.plan_id}/").context["page"].state
    assert "Commits at once" in client.get(f"/plans/billing/{pending.plan_id}/").text
    emergency.stop("Now.", actor=actors.OPERATOR)
    page = client.get(f"/plans/billing/{pending.plan_id}/")
    assert "Commits at once" not in page.text
    assert "an approved plan waits" in page.text
    assert page.context["page"].state != before
    page = client.get(f"/plans/billing/{approved.plan_id}/")
    assert "Sending is stopped for everything" in page.text


# ── the health of targets ────────────────────────────────────────────────────────────────────


def test_the_health_of_a_target_is_on_its_plans_and_on_settings(
    sign_in: Callable[[User], Client], ada: User, otto: User, billing: Target, make_plan: MakePlan
) -> None:
    forget()
    path = f"/plans/billing/{make_plan().plan_id}/"
    page = sign_in(ada).get(path).text
    assert ("No calls lately" in page, "is not well" in page) == (True, False)
    note(billing.pk, Answer(200, {}, b"", date_skew_seconds=-75.0))
    page = sign_in(ada).get(path).text
    assert ("billing is not well" in page, "-75.0 s from ours, which is too far" in page) == (
        True,
        True,
    )
    forget()
    note(billing.pk, NotSent("connect", "refused"))
    page = sign_in(otto).get("/settings/").text
    assert "50 % of the calls lately failed (the last: connect)" in page
    assert "not well" in page


@pytest.mark.parametrize(
    ("skew", "told"), [(-0.5, False), (1.9, False), (2.0, True), (-2.0, True), (30.0, True)]
)
def test_a_clock_is_told_only_where_whole_seconds_can_tell(
    sign_in: Callable[[User], Client],
    ada: User,
    billing: Target,
    make_plan: MakePlan,
    skew: float,
    told: bool,
) -> None:
    """The header `Date` of the same machine is up to a second behind; that is no news."""
    forget()
    note(billing.pk, Answer(200, {}, b"", date_skew_seconds=skew))
    page = sign_in(ada).get(f"/plans/billing/{make_plan().plan_id}/").text
    assert ("s from ours" in page, "is not well" in page) == (told, False)


@pytest.mark.parametrize(
    ("retention", "deadline", "words"),
    [
        (86400, 900, "at most 900 s"),
        (120, 900, "at most 60 s"),
        (None, 900, "at most 150 s after the first send; it does not say"),
    ],
)
def test_settings_tell_how_long_the_same_key_is_sent(
    sign_in: Callable[[User], Client],
    otto: User,
    refund: Operation,
    retention: int | None,
    deadline: int,
    words: str,
) -> None:
    Target.objects.update(key_retention_seconds=retention, unknown_deadline_seconds=deadline)
    assert words in sign_in(otto).get("/settings/").text


def test_leads_see_the_switch_and_nothing_else_of_settings(
    sign_in: Callable[[User], Client], grace: User, refund: Operation, api_key: str
) -> None:
    page = sign_in(grace).get("/settings/").text
    assert "Stop everything" in page
    for words in ("http://127.0.0.1:8001", "support-agent", "cs_", "apply_config"):
        assert words not in page
