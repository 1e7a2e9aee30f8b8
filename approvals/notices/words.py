"""What a notice says: what the page would say, from values read back, and the way to the page.

Nobody decides by a notice: it holds no token, no form and no link but those of pages, which ask
who is there (SEC-10). The agent's own words are not in it. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.conf import settings
from django.urls import reverse

from approvals import lookalikes
from approvals.notices.rows import Notice
from audit.safe_text import visible
from plans.models import Plan
from plans.status import MEANING, REPLANNED, Status

_LONGEST: Final = 300
# Mail programs and chats make links of what looks like one, and call people by their names.
_LINK: Final = re.compile(r"(?<=[A-Za-z]):(?=//)")
_CALL: Final = re.compile(r"(?<![\w.+-])@(?=\w)")
_WWW: Final = re.compile(r"\bwww\.(?=\w)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Words:
    """Plain texts. `facts` are (name, value); `url` leads to the plan's page."""

    heading: str
    title: str
    facts: list[tuple[str, str]]
    url: str


def words(notice: Notice, now: datetime) -> Words:
    """Of this moment: a plan that waits, or one that is over. `notice.plan` has its names."""
    plan = notice.plan
    over = notice.moment == Notice.Moment.OVER
    return Words(
        heading=_over(plan) if over else "A plan waits for a decision",
        title=defused(plan.title or f"{plan.operation.name} · {plan.plan_id}"),
        facts=_what_became(plan) if over else _what_waits(plan, now),
        url=settings.BASE_URL + reverse("plan", args=[plan.target.name, plan.plan_id]),
    )


def _what_waits(plan: Plan, now: datetime) -> list[tuple[str, str]]:
    minutes = max(0, int((plan.decide_by - now).total_seconds())) // 60
    facts = _about(plan)
    if plan.asked:
        facts.insert(0, ("Asked", defused(plan.asked)))
    facts.append(("Risk", plan.risk))
    facts.append(("Decide by", f"{_instant(plan.decide_by)}, in {minutes} min"))
    if plan.approvals_required > 1:
        facts.append(("Approvals", f"{plan.approvals_required} people have to approve it"))
    if not plan.verified:
        facts.append(("Not verified", f"{plan.target.name} offers no way to read this plan back"))
    return facts


def _what_became(plan: Plan) -> list[tuple[str, str]]:
    meaning = MEANING[Status(plan.status)].partition("; ")[0]
    facts = [*_about(plan), ("Outcome", f"{plan.get_status_display()}: {meaning}")]
    decided = [
        (d.get_verdict_display().capitalize(), f"by {defused(d.person.get_username())}")
        for d in plan.decisions.all()
        if d.round == plan.round
    ]
    again = [("Next", "it is being planned again; the new revision has a notice of its own")]
    return [*facts, *decided, *(again if plan.status in REPLANNED else [])]


def _about(plan: Plan) -> list[tuple[str, str]]:
    owner = plan.agent.owner.get_username()
    found = lookalikes.badges(plan.title)
    careful = [f"{badge.label}: {badge.detail}" if badge.detail else badge.label for badge in found]
    return [
        *(("Careful", defused(words)) for words in careful),
        ("Operation", f"{plan.target.name}.{plan.operation.name}"),
        ("Agent", defused(f"{plan.agent.name}, owned by {owner}")),
        ("Plan", f"{plan.plan_id}, revision {plan.revision}"),
    ]


def _over(plan: Plan) -> str:
    return f"A plan is over: {plan.get_status_display()}"


def _instant(when: datetime) -> str:
    return f"{when:%-d %b %H:%M:%S} UTC"


def defused(text: str) -> str:
    """One line in which nothing hides, nothing becomes a link, and nobody is called (SEC-13)."""
    seen = visible(text)
    for pattern, mark in ((_LINK, "⟨:⟩"), (_CALL, "⟨@⟩"), (_WWW, "www⟨.⟩")):
        seen = pattern.sub(mark, seen)
    return seen if len(seen) <= _LONGEST else f"{seen[:_LONGEST]}… (the page shows all of it)"


_SLACK: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def slack(said: Words) -> Mapping[str, object]:
    """The body that Slack, Mattermost and their like accept.

    Values of others are `plain_text`, in which no markup means anything; in `text`, which is
    markup for some, they are escaped.
    """
    facts = [f"{name}: {value}" for name, value in said.facts]
    told = "; ".join([said.heading, said.title, *facts]).translate(_SLACK)
    return {
        "text": f"{told} <{said.url}|Open it>",
        "mrkdwn": False,
        "unfurl_links": False,
        "blocks": [
            {"type": "section", "text": _plain(f"{said.heading}\n{said.title}")},
            {"type": "section", "fields": [_plain(fact) for fact in facts[:10]]},
            {
                "type": "section",
                "text": {"type": "mrkdwn", "text": f"<{said.url}|Open it>", "verbatim": True},
            },
        ],
    }


def _plain(text: str) -> dict[str, object]:
    return {"type": "plain_text", "text": text, "emoji": False}
