"""What a notice says, and what it never says (SEC-10, SEC-12, SEC-13)."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from approvals.models import Channel, Decision, Notice
from approvals.notices.letters import letter
from approvals.notices.words import defused, slack, words
from audit import actors
from plans.clock import clock
from plans.models import Plan
from plans.resolving import checked
from tests.approvals.paper_plans import MakePlan

pytestmark = pytest.mark.django_db


def notice(plan: Plan, person: User | None = None, moment: str = "waits") -> Notice:
    group, _ = Group.objects.get_or_create(name="reviewers")
    kind = "mail" if person else "webhook"
    channel, _ = Channel.objects.get_or_create(
        group=group,
        kind=kind,
        defaults={"on_since": clock(), "address": b"x", "secret": b"x", "origin": "https://x"},
    )
    row = Notice.objects.create(
        channel=channel, plan=plan, person=person, moment=moment, next_attempt_at=clock()
    )
    row.plan = Plan.objects.named(plan.pk)
    return row


HOSTILE = {
    "Refund\n\nSYSTEM: approved": "Refund⟨U+000A⟩⟨U+000A⟩SYSTEM: approved",
    "pay \u202e00.084 USD": "pay ⟨U+202E⟩00.084 USD",
    "a\u200bb\U000e0041": "a⟨U+200B⟩b⟨U+E0041⟩",
    "see https://evil.example/approve": "see https⟨:⟩//evil.example/approve",
    "see javascript://x and WWW.evil.example": "see javascript⟨:⟩//x and www⟨.⟩evil.example",
    "@here @channel <!channel> <@U123>": "⟨@⟩here ⟨@⟩channel <!channel> <⟨@⟩U123>",
    "mail ada@example.com": "mail ada@example.com",
    "\x1b[31mred": "⟨U+001B⟩[31mred",
}


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_hides_nothing_is_a_link_and_nobody_is_called(text: str) -> None:
    assert defused(text) == HOSTILE[text]


def test_a_long_text_is_cut_and_says_so() -> None:
    assert defused("x" * 5_000) == "x" * 300 + "… (the page shows all of it)"


def test_a_letter_says_what_waits_and_leads_to_the_page(ada: User, make_plan: MakePlan) -> None:
    plan = make_plan(reason="AGENT SAYS approve", summary="AGENT SAYS so", revision=2)
    sent = letter(notice(plan, ada), clock())
    assert (sent.to, sent.subject) == (
        ["ada@example.com"],
        "[Countersign] Refund 480.00 USD on invoice/4412",
    )
    body = str(sent.body)
    assert body.startswith(
        "A plan waits for a decision.\n\n    Refund 480.00 USD on invoice/4412\n"
    )
    for words_of_it in (
        "Operation  billing.refund",
        "Agent      support-agent, owned by dana",
        f"Plan       {plan.plan_id}, revision 2",
        "Risk       high",
        "in 9 min",
        f"http://127.0.0.1:8000/plans/billing/{plan.plan_id}/",
    ):
        assert words_of_it in body
    assert "AGENT SAYS" not in body
    assert re.findall(r"https?://\S+", body) == [
        f"http://127.0.0.1:8000/plans/billing/{plan.plan_id}/",
        "http://127.0.0.1:8000/notices/",
    ]


def test_a_letter_holds_no_secret(ada: User, make_plan: MakePlan, settings: Any) -> None:
    plan = make_plan()
    whole = letter(notice(plan, ada), clock()).message().as_string()
    for secret in ("token-of-the-tests", plan.idempotency_key, plan.digest, "sessionid", "csrf"):
        assert secret not in whole


def test_the_follow_up_stands_in_the_thread_of_its_plan(
    ada: User, grace: User, make_plan: MakePlan
) -> None:
    plan = make_plan()
    first = letter(notice(plan, ada), clock()).message()
    done = make_plan(status="committed", closed_at=clock(), intent=plan.intent, revision=2)
    Decision.objects.create(
        plan=done, person=grace, round=1, verdict="approve", shown_digest=done.digest
    )
    row = notice(done, ada, "over")
    second = letter(row, clock()).message()
    root = f"<intent.{plan.intent_id}@127.0.0.1>"
    assert first["References"] == root
    assert second["In-Reply-To"] == f"<{done.pk}.waits.{ada.pk}@127.0.0.1>"
    assert second["References"] == f"{root} {second['In-Reply-To']}"
    assert first["Message-ID"] == f"<{plan.pk}.waits.{ada.pk}@127.0.0.1>"
    assert letter(row, clock()).message()["Message-ID"] == second["Message-ID"]
    assert first["List-Id"] == "Countersign <notices.127.0.0.1>"
    assert first["Auto-Submitted"] == "auto-generated"
    text = second.get_content()
    assert text.startswith("A plan is over: committed.")
    assert "committed: applied, result stored" in text
    assert re.search(r"Approved +by grace", text)
    assert second["Subject"].startswith("Re: [Countersign] Refund 480.00 USD")


def test_what_is_planned_again_says_so(ada: User, make_plan: MakePlan) -> None:
    plan = make_plan(status="expired", closed_at=clock())
    assert "is being planned again" in str(letter(notice(plan, ada, "over"), clock()).body)


def test_who_is_needed_at_the_target_reads_what_to_do_there(ada: User, make_plan: MakePlan) -> None:
    plan = make_plan(status="unresolved")
    Decision.objects.create(
        plan=plan, person=ada, round=1, verdict="approve", shown_digest=plan.digest
    )
    row = notice(plan, ada, "unresolved")
    assert row.get_moment_display() == "needs a person at the target"
    sent = letter(row, clock())
    body, page = str(sent.body), f"http://127.0.0.1:8000/plans/billing/{plan.plan_id}/"
    assert body.startswith("A plan needs a person at the target.\n\n    Refund 480.00 USD on")
    for words_of_it in (
        r"Outcome +nobody knows: billing may have applied it, a part of it, or nothing",
        r"To do +look at billing, then say on the page what you found; the commit is not sent",
        r"Approved +by ada",
    ):
        assert re.search(words_of_it, body)
    assert re.findall(r"https?://\S+", body) == [page, "http://127.0.0.1:8000/notices/"]
    assert sent.message()["In-Reply-To"] == f"<{plan.pk}.waits.{ada.pk}@127.0.0.1>"
    assert "token-of-the-tests" not in sent.message().as_string()
    said = slack(words(row, clock()))
    assert str(said["text"]).startswith("A plan needs a person at the target; Refund 480.00 USD")


@pytest.mark.parametrize(
    ("applied", "outcome"),
    [(True, "committed: applied, result stored"), (False, "failed: nothing applied")],
)
def test_who_was_called_hears_who_found_out(
    client: Client, ada: User, grace: User, make_plan: MakePlan, applied: bool, outcome: str
) -> None:
    plan = make_plan(status="unresolved")
    client.force_login(grace)
    page = client.get(f"/plans/billing/{plan.plan_id}/").text
    assert f"/unresolved/?plan={plan.plan_id}" in page
    checked(plan.pk, applied=applied, note="I looked.", actor=actors.person(grace))
    facts = dict(words(notice(plan, ada, "over"), clock()).facts)
    assert facts["Outcome"] == outcome
    assert facts["Found out"] == "by grace, who looked at billing"


def test_hostile_titles_stay_on_their_line(ada: User, make_plan: MakePlan) -> None:
    plan = make_plan()
    Plan.objects.filter(pk=plan.pk).update(
        title="Refund\r\nBcc: evil@example.com\r\n\r\nApproved \u202e" + "x" * 500
    )
    sent = letter(notice(plan, ada), clock())
    message = sent.message()
    assert message["Bcc"] is None
    assert message["Subject"].startswith("[Countersign] Refund⟨U+000D⟩⟨U+000A⟩Bcc: evil")
    assert "\u202e" not in message.as_string()
    assert sent.recipients() == ["ada@example.com"]


def test_a_chat_gets_escaped_text_and_blocks_without_markup(make_plan: MakePlan) -> None:
    plan = make_plan()
    Plan.objects.filter(pk=plan.pk).update(title="<!channel> *pay* & <http://e.example|go> @here")
    row = notice(plan)
    said = json.loads(json.dumps(slack(words(row, clock()))))
    url = f"http://127.0.0.1:8000/plans/billing/{plan.plan_id}/"
    assert "&lt;!channel&gt; *pay* &amp; &lt;http⟨:⟩//e.example|go&gt; ⟨@⟩here" in said["text"]
    assert said["text"].endswith(f" <{url}|Open it>")
    assert said["text"].count("<") == 1
    assert said["mrkdwn"] is False
    *others, link = said["blocks"]
    assert {t["type"] for b in others for t in [b.get("text"), *b.get("fields", [])] if t} == {
        "plain_text"
    }
    assert link["text"]["text"] == f"<{url}|Open it>"


def test_a_plan_that_is_not_verified_or_needs_several_says_so(make_plan: MakePlan) -> None:
    plan = make_plan(verification=Plan.Verification.UNAVAILABLE)
    Plan.objects.filter(pk=plan.pk).update(approvals_required=2, asked="Asked for 1.00 USD")
    facts = dict(words(notice(plan), clock() + timedelta(hours=1)).facts)
    assert facts["Asked"] == "Asked for 1.00 USD"
    assert facts["Approvals"] == "2 people have to approve it"
    assert "no way to read this plan back" in facts["Not verified"]
    assert facts["Decide by"].endswith("in 0 min")


def test_letters_that_look_like_others_are_named(make_plan: MakePlan) -> None:
    plan = make_plan()
    Plan.objects.filter(pk=plan.pk).update(title="Refund 1.00 USD on p\u0430ypal")
    assert ("Careful", "mixed scripts: \u0430 U+0430") in words(notice(plan), clock()).facts
