"""What the audit page shows, as an object: the query string in, a queryset out."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Self
from urllib.parse import urlencode

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.utils.translation import gettext as _

from audit.actions import Action
from audit.models import Event

LONGEST: Final = 200
WORDS: Final = ("q", "actor", "action", "target", "plan", "intent", "task", "from", "to")
NOUNS: Final = tuple(dict.fromkeys(action.partition(".")[0] for action in Action))

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INSTANT = re.compile(
    _DATE.pattern + r"[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})?"
)
_ID = re.compile(r"[1-9][0-9]{0,17}")


@dataclass(frozen=True, slots=True)
class Filters:
    """`?q=&actor=&action=&target=&plan=&intent=&task=&from=&to=` and a page's place in ids.

    `values` holds the words as they were given, for the form and for links; `errors` says by
    name what cannot be understood: then nothing is selected, rather than something else.
    """

    values: dict[str, str]
    errors: dict[str, str] = field(default_factory=dict)
    before: int | None = None
    after: int | None = None
    intent: uuid.UUID | None = None
    since: datetime | None = None
    until: datetime | None = None

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> Self:
        values = {name: query.get(name, "").strip() for name in WORDS}
        values = {name: value for name, value in values.items() if value}
        reader = _Reader(values | {name: query.get(name, "") for name in ("before", "after")})
        for name in values:
            reader.check_text(name)
        reader.read("action", _action)
        return cls(
            values=values,
            errors=reader.errors,
            before=reader.read("before", _event_id),
            after=reader.read("after", _event_id),
            intent=reader.read("intent", uuid.UUID, _("is not an intent's ID")),
            **reader.period(),
        )

    @property
    def active(self) -> bool:
        return bool(self.values)

    @property
    def narrows(self) -> int:
        """How many filters besides the text are set: the page says so where they are folded."""
        return len(self.values.keys() - {"q"})

    @property
    def story(self) -> bool:
        """One intent from its beginning: told in order, on one page."""
        return self.intent is not None

    def query(self, **changes: str | int) -> str:
        """The query string of the same filters, with these words added or replaced."""
        return urlencode(self.values | {name: str(value) for name, value in changes.items()})

    def events(self) -> QuerySet[Event]:
        """The events that match every filter, in no order; none where a filter is in error."""
        if self.errors:
            return Event.objects.none()
        events = Event.objects.filter(self._exact(), self._period())
        if action := self.values.get("action"):
            exact = action in list(Action)
            events = events.filter(
                **{"action" if exact else "action__startswith": action if exact else f"{action}."}
            )
        return self._searched(events)

    def _exact(self) -> Q:
        columns = {"target": "target", "plan": "plan_id", "task": "task_id"}
        wanted = Q(**{columns[name]: self.values[name] for name in columns if name in self.values})
        if actor := self.values.get("actor"):
            # Names are stored as people sign in; "Ada" means "ada", by the same index.
            wanted &= Q(actor_label__in={actor, actor.lower()})
        return wanted & Q(intent_id=self.intent) if self.intent else wanted

    def _period(self) -> Q:
        wanted = Q(at__gte=self.since) if self.since else Q()
        return wanted & Q(at__lt=self.until) if self.until else wanted

    def _searched(self, events: QuerySet[Event]) -> QuerySet[Event]:
        """Text looks at what the sentences are made of, the details included."""
        text = self.values.get("q")
        if not text:
            return events
        wanted = Q(told__icontains=text)
        for column in ("title", "plan_id", "task_id", "actor_label", "target", "operation"):
            wanted |= Q(**{f"{column}__icontains": text})
        for column in ("agent", "action", "request_id"):
            wanted |= Q(**{f"{column}__icontains": text})
        return events.alias(told=Cast("details", TextField())).filter(wanted)


class _Reader:
    """Reads words of a query string and keeps what is wrong with them, by name."""

    def __init__(self, words: Mapping[str, str]) -> None:
        self.words = words
        self.errors: dict[str, str] = {}

    def check_text(self, name: str) -> None:
        if len(self.words[name]) > LONGEST:
            self.errors[name] = _("is longer than {number} characters").format(number=LONGEST)
        elif "\0" in self.words[name]:
            self.errors[name] = _("holds a character that no event can hold")

    def read[T](self, name: str, convert: Callable[[str], T], complaint: str = "") -> T | None:
        text = self.words.get(name, "")
        if not text or name in self.errors:
            return None
        try:
            return convert(text)
        except ValueError as error:
            self.errors[name] = complaint or str(error)
            return None

    def period(self) -> dict[str, Any]:
        """`from` counts from its beginning, `to` to its end: a day or a minute is all inside."""
        begins, ends = self.read("from", _span), self.read("to", _span)
        since, until = begins and begins[0], ends and ends[1]
        if since and until and since >= until:
            self.errors["to"] = _("is before “from”")
        return {"since": since, "until": until}


def _action(text: str) -> str:
    """One action, or a noun with all of its actions."""
    if text not in list(Action) and text not in NOUNS:
        raise ValueError(_("is not the name of an action"))
    return text


def _event_id(text: str) -> int:
    if not _ID.fullmatch(text):
        raise ValueError(_("is not the place of a page"))
    return int(text)


def _span(text: str) -> tuple[datetime, datetime]:
    """First instant and first one after: of a day, a minute, a second or an instant, in UTC."""
    instant = _INSTANT.fullmatch(text)
    if not (instant or _DATE.fullmatch(text)):
        raise ValueError(_("is not a date like 2026-03-14, or a time like 2026-03-14T09:41Z"))
    if not instant:
        step = timedelta(days=1)
    elif instant[1] is None:
        step = timedelta(minutes=1)
    else:
        step = timedelta(seconds=1) if instant[2] is None else timedelta(microseconds=1)
    try:
        found = datetime.fromisoformat(text)
        found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        return found, found + step
    except (ValueError, OverflowError):
        raise ValueError(_("is no date of the calendar")) from None
