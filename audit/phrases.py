"""The pieces of a sentence: what an event holds, as short texts that hide nothing.

Every value is another party's; `Part` writes out what deceives (SEC-13), templates escape the rest.
Details are read with suspicion: an older version may have stored another shape.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from audit.models import Event
from audit.safe_text import visible

_LONGEST: Final = 160
_MOST_ITEMS: Final = 4


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of text and what it is: "" for our own words, else name, plan, value or note."""

    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """An event, with the revision of its plan where the trail knows it."""

    event: Event
    revision: int | None = None

    def detail(self, key: str) -> Any:
        details = self.event.details
        return details.get(key) if isinstance(details, dict) else None


type Phrase = Callable[[Told], list[Part]]


def shown(value: Any, kind: str = "value") -> Part:
    """Any JSON value in one line. Long ones are cut here: the details below hold all of it."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    cut = f"{text[:_LONGEST]}…" if len(text) > _LONGEST else text
    return Part(visible(cut), kind)


def own(text: str) -> list[Part]:
    """Words of ours, which the catalogue holds."""
    return [Part(_(text))]


def actor(told: Told) -> list[Part]:
    """The system's own labels are words of ours ("the clock"); all others are names."""
    event = told.event
    if event.actor_kind == "system":
        return own(event.actor_label)
    return [shown(event.actor_label, "name")]


def target(told: Told) -> list[Part]:
    return [shown(told.event.target or _("the target"), "name" if told.event.target else "")]


def plan(told: Told) -> list[Part]:
    """The title, the plan ID, and the revision from the second on."""
    event = told.event
    parts = [shown(event.title, "name")] if event.title else list(_kind_of_write(event))
    if event.plan_id:
        parts += [Part(" ("), shown(event.plan_id, "plan"), Part(")")]
    if told.revision is not None and told.revision > 1:
        parts.append(Part(_(", revision {number}").format(number=told.revision)))
    return parts


def intent(told: Told) -> list[Part]:
    """The logical write, which may have no plan yet."""
    event = told.event
    parts = [shown(event.title, "name")] if event.title else list(_kind_of_write(event))
    return (
        [*parts, Part(_(" for task ")), shown(event.task_id, "value")] if event.task_id else parts
    )


def _kind_of_write(event: Event) -> Iterable[Part]:
    if event.operation:
        yield Part(_("a "))
        yield shown(event.operation, "name")
        yield Part(_(" at "))
        yield shown(event.target, "name")
    else:
        yield Part(_("a plan"))


def task(told: Told) -> list[Part]:
    return [shown(told.event.task_id or "?")]


def agent(told: Told) -> list[Part]:
    return [shown(told.event.agent or _("the agent"), "name" if told.event.agent else "")]


def note(told: Told) -> list[Part]:
    """What a person or an agent wrote; nothing when they did not."""
    text = told.detail("note")
    return [Part(": “"), shown(text, "note"), Part("”")] if text else []


def said(told: Told) -> list[Part]:
    """What a person said, over several lines maybe, in one."""
    text = str(told.detail("note") or "")
    return [Part(": “"), shown(" ⏎ ".join(text.split("\n")), "note"), Part("”")] if text else []


def because(told: Told) -> list[Part]:
    """The reason that the event names; nothing without one, or where the outcome says it."""
    reason = told.detail("reason")
    repeats = reason == told.detail("outcome")
    return [Part(": "), shown(_spaced(reason), "note")] if reason and not repeats else []


def detail(key: str, absent: str = "") -> Phrase:
    """A member of the details as a value, or words of ours in its place."""

    def phrase(told: Told) -> list[Part]:
        value = told.detail(key)
        return own(absent) if value in (None, "") else [shown(value)]

    return phrase


def word(key: str, absent: str) -> Phrase:
    """A member that is a code of ours, as words: `already-decided` → already decided."""

    def phrase(told: Told) -> list[Part]:
        value = told.detail(key)
        return [shown(_spaced(value), "")] if value else own(absent)

    return phrase


def left(told: Told) -> list[Part]:
    """How long a plan could still be decided when somebody opened it."""
    seconds = told.detail("seconds_left")
    return own(time_left(seconds) if isinstance(seconds, int) else _("little time"))


def time_left(seconds: float) -> str:
    """`1 min` or `40 s`, never negative: what a person could still use."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    return f"{minutes} min" if minutes else f"{rest} s"


def _spaced(value: Any) -> Any:
    """Codes become words; what people wrote holds spaces already and stays as it is."""
    if isinstance(value, str) and " " not in value:
        return _(value.replace("-", " ").replace("_", " "))
    return value


def listed(key: str, one: Callable[[Mapping[str, Any]], list[Part]], absent: str) -> Phrase:
    """The first few objects of a list in the details, and how many more there are."""

    def phrase(told: Told) -> list[Part]:
        found = told.detail(key)
        items = [item for item in found if isinstance(item, dict)] if type(found) is list else []
        if not items:
            return own(absent)
        parts: list[Part] = []
        for item in items[:_MOST_ITEMS]:
            parts += [*own(", " if parts else ""), *one(item)]
        more = len(items) - _MOST_ITEMS
        return [*parts, Part(_(" and {number} more").format(number=more))] if more > 0 else parts

    return phrase


def moved(item: Mapping[str, Any]) -> list[Part]:
    """refunded_cents changed 0 → 20000"""
    before, after = shown(item.get("planned")), shown(item.get("current"))
    return [shown(item.get("path")), Part(_(" changed ")), before, Part(" → "), after]


def differs(item: Mapping[str, Any]) -> list[Part]:
    """/actions/0/to: submitted 1, read back 2"""
    told, read = shown(item.get("submitted")), shown(item.get("read_back"))
    place = shown(item.get("pointer") or _("the plan"))
    return [place, Part(_(" was submitted as ")), told, Part(_(" and reads ")), read]


def configured(item: Mapping[str, Any]) -> list[Part]:
    """fresh_for_seconds 120 → 60, or credential replaced"""
    if "words" in item:
        return [shown(item.get("key")), Part(" "), shown(_(str(item["words"])), "")]
    if "to" not in item:
        return [shown(item.get("key"))]
    before = [shown(item["from"]), Part(" → ")] if item.get("from") is not None else []
    return [shown(item.get("key")), Part(" "), *before, shown(item["to"])]


def answer(told: Told) -> list[Part]:
    """billing answered 409, or that no answer came."""
    status = told.detail("http_status")
    if status is None:
        return [
            *own(gettext_noop("no answer from ")),
            *target(told),
            *own(gettext_noop(" that says more")),
        ]
    return [*target(told), *own(gettext_noop(" answered ")), shown(status)]


def duration(told: Told) -> list[Part]:
    elapsed = told.detail("elapsed_ms")
    return (
        [Part(_(" after {number} ms").format(number=f"{elapsed:.0f}"))]
        if isinstance(elapsed, int | float)
        else []
    )


def problem(told: Told) -> list[Part]:
    """The target's own words for its refusal."""
    found = told.detail("problem")
    if not isinstance(found, dict):
        return because(told)
    said = [str(found[key]) for key in ("status", "code", "detail") if found.get(key)]
    return [Part(": "), shown(" · ".join(said), "note")] if said else []
