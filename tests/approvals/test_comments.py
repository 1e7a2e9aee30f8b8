"""What people say about a plan, and the evidence that comes later (4-screens, SEC-12, SEC-13)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, transaction
from django.test import Client

from approvals import comments
from approvals.comments import LONGEST, MOST
from approvals.conversation import Look
from approvals.models import Comment, Decision
from audit.models import Event
from audit.sentences import sentence
from plans.clock import clock
from plans.models import Evidence, Plan
from plans.representation import entity_tag, represent
from tests.approvals.paper_plans import MakePlan

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


def address(plan: Plan) -> str:
    return f"/plans/billing/{plan.plan_id}/"


def say(client: Client, plan: Plan, text: str, **fields: str) -> Any:
    headers = HTMX if fields.pop("htmx", "") else {}
    return client.post(f"{address(plan)}comments/", {"comment": text, **fields}, headers=headers)


@pytest.mark.parametrize(
    ("person", "status"),
    [("ada", 303), ("dana", 303), ("mona", 303), ("otto", 404), ("charlie", 404)],
)
def test_who_sees_the_plan_may_comment(
    client: Client, request: pytest.FixtureRequest, make_plan: MakePlan, person: str, status: int
) -> None:
    plan = make_plan()
    client.force_login(request.getfixturevalue(person))
    answer = say(client, plan, "  Customer called;\r\nit is right.  ")
    assert answer.status_code == status
    assert Comment.objects.count() == (status == 303)
    if status == 303:
        assert answer.url == f"{address(plan)}#conversation"
        page = client.get(address(plan)).text
        assert "Customer called;\nit is right.</bdi>" in page
        event = Event.objects.get(action="comment.added")
        assert event.details == {"note": "Customer called;\nit is right."}
        said = str(sentence(event))
        assert said.startswith(f"{person} commented on Refund 480.00 USD")
        assert said.endswith("“Customer called; ⏎ it is right.”")


BAD = {
    "": "needs some words",
    " \r\n\t ": "needs some words",
    "x" * (LONGEST + 1): "at most 2,000 characters; this one has 2,001",
    "a\x00b": "cannot hold the character NUL",
}


@pytest.mark.parametrize("text", BAD, ids=["empty", "blank", "long", "nul"])
@pytest.mark.parametrize("htmx", ["", "yes"])
def test_what_is_no_comment_is_refused_beside_its_field(
    client: Client, ada: User, make_plan: MakePlan, text: str, htmx: str
) -> None:
    plan = make_plan()
    client.force_login(ada)
    answer = say(client, plan, text, note="not yet decided", htmx=htmx)
    assert answer.status_code == 422
    assert BAD[text] in answer.text
    assert 'aria-invalid="true" autofocus' in answer.text
    assert ("not yet decided" in answer.text) is not bool(htmx)
    told = client.post(
        f"{address(plan)}comments/",
        {"comment": text},
        headers={"Accept": "application/problem+json"},
    )
    assert told.json()["errors"][0]["pointer"] == "/comment"
    assert not Comment.objects.exists()


def test_the_longest_is_stored_and_hostile_text_is_only_text(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    client.force_login(ada)
    hostile = '<img src=x onerror=alert(1)> {{7*7}} \u202egnp\u200b<a hx-get="/stop/">SYSTEM</a>'
    assert say(client, plan, hostile + "x" * (LONGEST - len(hostile))).status_code == 303
    page = client.get(address(plan)).text
    assert "&lt;img src=x onerror=alert(1)&gt; {{7*7}} ⟨U+202E⟩gnp⟨U+200B⟩" in page
    assert "<img src=x" not in page
    assert "\u202e" not in page


def test_sent_twice_it_is_one_and_a_plan_takes_only_so_many(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    client.force_login(ada)
    assert [say(client, plan, "once").status_code for _ in range(2)] == [303, 303]
    assert (Comment.objects.count(), Event.objects.filter(action="comment.added").count()) == (1, 1)
    Comment.objects.bulk_create(
        [Comment(plan=plan, person=ada, text=str(n)) for n in range(MOST - 2)]
    )
    assert say(client, plan, "the last").status_code == 303
    assert say(client, plan, "one more").status_code == 422


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"approved_by": "mona"}, "unknown-field"),
        ({"plan_id": "plan_of_another"}, "id-mismatch"),
        ({"target": "other"}, "id-mismatch"),
    ],
)
def test_it_takes_nothing_but_its_fields(
    client: Client, ada: User, make_plan: MakePlan, fields: dict[str, str], code: str
) -> None:
    client.force_login(ada)
    answer = client.post(
        f"{address(make_plan())}comments/",
        {"comment": "x", **fields},
        headers={"Accept": "application/problem+json"},
    )
    assert (answer.status_code, answer.json()["code"]) == (422, code)


def test_the_database_refuses_every_change_of_one(ada: User, make_plan: MakePlan) -> None:
    comment = comments.add(ada, make_plan().pk, "Looks right.")
    for change in (comment.delete, lambda: Comment.objects.update(text="Never said")):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            change()
    assert Comment.objects.get().text == "Looks right."


def test_the_agent_and_the_digest_know_nothing_of_it(ada: User, make_plan: MakePlan) -> None:
    plan = make_plan()
    now = clock()
    (before,) = represent([plan], now)
    comments.add(ada, plan.pk, "A secret between people")
    (after,) = represent([Plan.objects.named(plan.pk)], now)
    assert (after, entity_tag(after)) == (before, entity_tag(before))


def test_a_closed_plan_is_still_talked_about(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan(status="rejected", closed_at=clock())
    client.force_login(ada)
    assert say(client, plan, "We should have asked first.").status_code == 303
    assert "We should have asked first." in client.get(address(plan)).text


def test_the_note_of_a_decision_stays_without_javascript_too(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    client.force_login(ada)
    answer = say(client, plan, "Who knows this customer?", note="I wait for Grace", confirm="480")
    assert answer.status_code == 200
    assert ">I wait for Grace</textarea>" in answer.text
    assert "Who knows this customer?</bdi>" in answer.text
    assert answer.text.count("Who knows this customer?") == 2  # Said, and in the timeline.
    part = say(client, plan, "And this?", htmx="yes").text
    assert part.lstrip().startswith('<section id="conversation"')
    assert 'id="decision"' not in part


def test_one_that_was_typed_and_not_sent_goes_with_the_decision(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    client.force_login(ada)
    form = {"verdict": "reject", "note": "no", "shown_digest": plan.digest}
    too_long = client.post(f"{address(plan)}decision/", {**form, "comment": "x" * 2_001})
    assert (too_long.status_code, Decision.objects.count()) == (422, 0)
    client.post(f"{address(plan)}decision/", {**form, "comment": "I asked Grace."})
    assert Decision.objects.get().verdict == "reject"
    assert Comment.objects.get().text == "I asked Grace."


# ── what comes while the page is open ────────────────────────────────────────────────────────


def ask(client: Client, plan: Plan, state: str, look: object) -> Any:
    headers = HTMX | {"Plan-State": state}
    return client.get(address(plan), {"talk": str(look)}, headers=headers)


def test_an_open_page_is_told_what_came_and_nothing_else(
    client: Client, ada: User, grace: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    client.force_login(ada)
    shown = client.get(address(plan))
    state, look = shown.context["page"].state, shown.context["page"].talk.look
    assert ask(client, plan, state, look).status_code == 204
    Evidence.objects.create(plan=plan, label="A call", text="He wants it back.")
    comments.add(grace, plan.pk, "I know him.")
    told = ask(client, plan, state, look)
    assert (told.status_code, told.headers["HX-Reswap"]) == (200, "none")
    assert '<a href="#evidence">1 piece of evidence</a>, <a href="#conversation">1 com' in told.text
    assert "new since you opened this page" in told.text
    assert "textarea" not in told.text
    again = Look(1, 1, look.opened)
    assert f'value="{again}"' in told.text
    assert ask(client, plan, state, again).status_code == 204


@pytest.mark.parametrize(
    "look", ["", "1", "1.2", "1.2.3.4", "9.9.999999999999999", "\u0661.2.3", "x.y.z"]
)
def test_a_look_that_is_none_changes_nothing(
    client: Client, ada: User, make_plan: MakePlan, look: str
) -> None:
    plan = make_plan()
    client.force_login(ada)
    state = client.get(address(plan)).context["page"].state
    assert ask(client, plan, state, look).status_code == 204


def test_my_own_comment_is_no_news_to_me(client: Client, ada: User, make_plan: MakePlan) -> None:
    plan = make_plan()
    client.force_login(ada)
    shown = client.get(address(plan))
    comments.add(ada, plan.pk, "Mine, from the other window.")
    page = shown.context["page"]
    told = ask(client, plan, page.state, page.talk.look)
    assert "Mine, from the other window." in told.text
    assert "New since you opened" not in told.text


MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("columns", "after", "says"),
    [
        ({}, -MINUTE, ""),
        ({}, MINUTE / 2, "new since it began to wait"),
        ({"round": 2}, MINUTE / 2, "new since it waits again"),
        ({"status": "rejected"}, MINUTE / 2, ""),
    ],
)
def test_evidence_says_since_when_it_is_new(
    client: Client,
    ada: User,
    make_plan: MakePlan,
    columns: dict[str, Any],
    after: timedelta,
    says: str,
) -> None:
    began = clock() - MINUTE
    plan = make_plan(**columns, status_at=began)
    Evidence.objects.create(plan=plan, label="A call", text="x", added_at=began + after)
    client.force_login(ada)
    assert [found.new for found in client.get(address(plan)).context["page"].talk.evidence] == [
        says
    ]


def test_the_form_of_a_refused_decision_remembers_when_its_page_was_opened(
    client: Client, ada: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    client.force_login(ada)
    token = client.get(address(plan)).context["shown_at"]
    Evidence.objects.create(plan=plan, label="A call", text="x")
    form = {"verdict": "reject", "note": "", "shown_digest": plan.digest, "shown_at": token}
    page = client.post(f"{address(plan)}decision/", form)
    assert page.status_code == 422
    assert "new since you opened this page" in page.text
