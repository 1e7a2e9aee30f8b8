"""A stretch of the trail for a page: keyset by id, so that a link always shows the same rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date
from typing import Final

from django.utils.translation import gettext as _

from audit.actions import Action
from audit.filters import Filters
from audit.models import Event
from audit.safe_text import visible
from audit.sentences import Sentence, sentence, tone

PAGE: Final = 50
STORY: Final = 1_000


@dataclass(frozen=True, slots=True)
class Line:
    """An event as a page shows it."""

    event: Event
    sentence: Sentence
    tone: str

    @property
    def day(self) -> date:
        return self.event.at.astimezone(UTC).date()

    @property
    def facts(self) -> Iterator[tuple[str, str]]:
        """What the sentence leaves out, name by name; empty ones are left out."""
        event = self.event
        move = " → ".join(filter(None, (event.from_status, event.to_status)))
        named = {
            _("Action"): event.action,
            _("Status"): move,
            _("Actor"): f"{event.actor_kind} {event.actor_id}",
            _("Plan ID"): event.plan_id,
            _("Task"): event.task_id,
            _("Agent"): event.agent,
            _("Request"): event.request_id,
            _("Address"): event.ip or "",
            _("Details"): json.dumps(event.details, ensure_ascii=False, indent=2),
        }
        if not event.details:
            del named[_("Details")]
        return ((name, visible(text, lines=True)) for name, text in named.items() if text)


@dataclass(frozen=True, slots=True)
class Page:
    """Lines in the order of the page; `newer` and `older` are query strings, "" where it ends."""

    lines: list[Line]
    newer: str = ""
    older: str = ""
    later: str = ""


def read_page(filters: Filters) -> Page:
    """Newest first; an intent's story from its beginning (4-screens, "Audit")."""
    if filters.story:
        return _story(filters)
    events = filters.events()
    forward = filters.after is not None and filters.before is None
    if forward:
        rows = list(events.filter(id__gt=filters.after).order_by("id")[: PAGE + 1])
        more, rows = len(rows) > PAGE, rows[:PAGE][::-1]
    else:
        older = events.filter(id__lt=filters.before) if filters.before else events
        rows = list(older.order_by("-id")[: PAGE + 1])
        more, rows = len(rows) > PAGE, rows[:PAGE]
    has_newer, has_older = (more, True) if forward else (filters.before is not None, more)
    return Page(
        lines=tell(rows),
        newer=filters.query(after=rows[0].pk) if rows and has_newer else "",
        older=filters.query(before=rows[-1].pk) if rows and has_older else "",
    )


def _story(filters: Filters) -> Page:
    events = filters.events().order_by("id")
    rows = list((events.filter(id__gt=filters.after) if filters.after else events)[: STORY + 1])
    more, rows = len(rows) > STORY, rows[:STORY]
    return Page(lines=tell(rows), later=filters.query(after=rows[-1].pk) if more else "")


def tell(events: Sequence[Event]) -> list[Line]:
    """Events with their sentences; one query for the revisions of all their plans."""
    revisions = _revisions(events)
    return [
        Line(event, sentence(event, revisions.get((event.target, event.plan_id))), tone(event))
        for event in events
    ]


def _revisions(events: Iterable[Event]) -> dict[tuple[str, str], int]:
    """Which revision a plan is, as its submission recorded it."""
    plans = {(event.target, event.plan_id) for event in events if event.plan_id}
    if not plans:
        return {}
    rows = Event.objects.filter(
        action=Action.PLAN_SUBMITTED,
        target__in={target for target, _plan in plans},
        plan_id__in={plan_id for _target, plan_id in plans},
    )
    return {
        (target, plan_id): details["revision"]
        for target, plan_id, details in rows.values_list("target", "plan_id", "details")
        if isinstance(details.get("revision"), int)
    }
