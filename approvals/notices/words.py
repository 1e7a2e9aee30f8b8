"""What a notice says: what the page would say, from values read back, and the way to the page.

Nobody decides by a notice: it holds no token, no form and no link but those of pages, which ask
who is there (SEC-10). The agent's own words are not in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.conf import settings
from django.urls import reverse
from django.utils.dates import MONTHS_3
from django.utils.translation import gettext as _

from approvals import lookalikes
from approvals.notices.rows import Notice
from audit.actions import Action
from audit.models import Event
from audit.safe_text import visible
from plans.models import Plan
from plans.status import MEANING, REPLANNED, Status

_LONGEST: Final = 300
_FOUND: Final = (Action.PLAN_CHECKED_APPLIED, Action.PLAN_CHECKED_NOT_APPLIED)
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
    """Of this moment: a plan that needs people, or is over. `notice.plan` has its names."""
    plan = notice.plan
    match notice.moment:
        case Notice.Moment.WAITS:
            heading, facts = _("A plan waits for a decision"), _what_waits(plan, now)
        case Notice.Moment.UNRESOLVED:
            heading, facts = _("A plan needs a person at the target"), _what_to_find_out(plan)
        case _:
            heading, facts = _over(plan), _what_became(plan)
    return Words(
        heading=heading,
        title=defused(plan.title or f"{plan.operation.name} · {plan.plan_id}"),
        facts=facts,
        url=settings.BASE_URL + reverse("plan", args=[plan.target.name, plan.plan_id]),
    )


def _what_waits(plan: Plan, now: datetime) -> list[tuple[str, str]]:
    minutes = max(0, int((plan.decide_by - now).total_seconds())) // 60
    facts = _about(plan)
    if plan.asked:
        facts.insert(0, (_("Asked"), defused(plan.asked)))
    facts.append((_("Risk"), _(plan.risk)))
    soon = _("{instant}, in {minutes} min")
    facts.append((_("Decide by"), soon.format(instant=_instant(plan.decide_by), minutes=minutes)))
    if plan.approvals_required > 1:
        text = _("{number} people have to approve it").format(number=plan.approvals_required)
        facts.append((_("Approvals"), text))
    if not plan.verified:
        text = _("{target} offers no way to read this plan back").format(target=plan.target.name)
        facts.append((_("Not verified"), text))
    return facts


def _what_to_find_out(plan: Plan) -> list[tuple[str, str]]:
    """As on the page: every outcome is possible, and a person has the next word (T-10)."""
    target = plan.target.name
    text = _("nobody knows: {target} may have applied it, a part of it, or nothing")
    todo = _("look at {target}, then say on the page what you found; the commit is not sent again")
    return [
        (_("Outcome"), text.format(target=target)),
        (_("To do"), todo.format(target=target)),
        *_about(plan),
        (_("Risk"), _(plan.risk)),
        *_decided(plan),
    ]


def _what_became(plan: Plan) -> list[tuple[str, str]]:
    found, meaning = _found_out(plan), _(MEANING[Status(plan.status)]).partition("; ")[0]
    if found and plan.status == Status.FAILED:
        meaning = _("nothing applied")
    facts = [*_about(plan), (_("Outcome"), f"{plan.get_status_display()}: {meaning}")]
    text = _("it is being planned again; the new revision has a notice of its own")
    again = [(_("Next"), text)]
    return [*facts, *_decided(plan), *found, *(again if plan.status in REPLANNED else [])]


def _decided(plan: Plan) -> list[tuple[str, str]]:
    by = _("by {name}")
    return [
        (d.get_verdict_display().capitalize(), by.format(name=defused(d.person.get_username())))
        for d in plan.decisions.all()
        if d.round == plan.round
    ]


def _found_out(plan: Plan) -> list[tuple[str, str]]:
    """Whose word the outcome is, where the target gave none."""
    about = Event.objects.filter(target=plan.target.name, plan_id=plan.plan_id, action__in=_FOUND)
    by = _("by {name}, who looked at {target}")
    return [
        (_("Found out"), by.format(name=defused(event.actor_label), target=plan.target.name))
        for event in about.order_by("pk")
    ]


def _about(plan: Plan) -> list[tuple[str, str]]:
    owner = plan.agent.owner.get_username()
    found = lookalikes.badges(plan.title)
    careful = [f"{badge.label}: {badge.detail}" if badge.detail else badge.label for badge in found]
    return [
        *((_("Careful"), defused(words)) for words in careful),
        (_("Operation"), f"{plan.target.name}.{plan.operation.name}"),
        (
            _("Agent"),
            defused(_("{agent}, owned by {owner}").format(agent=plan.agent.name, owner=owner)),
        ),
        (_("Plan"), f"{plan.plan_id}{_(', revision {number}').format(number=plan.revision)}"),
    ]


def _over(plan: Plan) -> str:
    return _("A plan is over: {status}").format(status=plan.get_status_display())


def _instant(when: datetime) -> str:
    return f"{when.day} {str(MONTHS_3[when.month]).title()} {when:%H:%M:%S} UTC"


def defused(text: str) -> str:
    """One line in which nothing hides, nothing becomes a link, and nobody is called (SEC-13)."""
    seen = visible(text)
    for pattern, mark in ((_LINK, "⟨:⟩"), (_CALL, "⟨@⟩"), (_WWW, "www⟨.⟩")):
        seen = pattern.sub(mark, seen)
    return (
        seen if len(seen) <= _LONGEST else f"{seen[:_LONGEST]}… {_('(the page shows all of it)')}"
    )


_SLACK: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def slack(said: Words) -> Mapping[str, object]:
    """The body that Slack, Mattermost and their like accept.

    Values of others are `plain_text`, in which no markup means anything; in `text`, which is
    markup for some, they are escaped.
    """
    facts = [f"{name}: {value}" for name, value in said.facts]
    link = f"<{said.url}|{_('Open it')}>"
    told = "; ".join([said.heading, said.title, *facts]).translate(_SLACK)
    return {
        "text": f"{told} {link}",
        "mrkdwn": False,
        "unfurl_links": False,
        "blocks": [
            {"type": "section", "text": _plain(f"{said.heading}\n{said.title}")},
            {"type": "section", "fields": [_plain(fact) for fact in facts[:10]]},
            {
                "type": "section",
                "text": {"type": "mrkdwn", "text": link, "verbatim": True},
            },
        ],
    }


def _plain(text: str) -> dict[str, object]:
    return {"type": "plain_text", "text": text, "emoji": False}
