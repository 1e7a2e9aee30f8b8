"""Plans whose outcome a person has to find out at the target: what the page says of each (T-10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Self
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Q
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as words

from approvals import queue
from approvals.changes import Change, changes
from audit.models import Event
from plans.models import Attempt, Plan
from plans.outcomes import ReadKind

PAGE: Final = 20
# Large, and of no use to who looks into an outcome.
UNREAD: Final = ("token", "commit_body", "document", "inputs", "demands", "result")
# What the target says of the plan when it is read now, and how much that is worth (T-8).
READINGS: Final[dict[str, tuple[str, Promise]]] = {
    ReadKind.APPLIED: ("good", words("says that it is applied")),
    ReadKind.NOT_APPLIED: (
        "info",
        words("says that it is not applied, and that it never will be"),
    ),
    ReadKind.EXPIRED: ("info", words("says that it expired without being applied")),
    ReadKind.PARTLY_APPLIED: ("bad", words("says that only a part of it is applied")),
    ReadKind.IN_PROGRESS: ("warn", words("says that it is still at work on it")),
    ReadKind.OPEN: (
        "warn",
        words("says that nothing has come of it yet, which proves nothing"),
    ),
    ReadKind.MISSING: (
        "warn",
        words("does not know this plan, or not any more, which proves nothing"),
    ),
    ReadKind.UNREADABLE: ("warn", words("gave no answer that can be read")),
}


@dataclass(frozen=True, slots=True)
class Look:
    """`/unresolved/?after=&plan=`: where the last page ended, or the one plan that is meant."""

    since: datetime | None = None
    pk: int = 0
    plan_id: str = ""

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> Self:
        """Words that no page has made are left out: the list then starts at its top."""
        plan_id = query.get("plan", "").replace("\0", "")[:128]
        when, _, pk = query.get("after", "").partition("~")
        try:
            since = datetime.fromisoformat(when)
        except ValueError:
            since = None
        numbered = pk.isascii() and pk.isdigit() and len(pk) < 19
        if since is None or since.tzinfo is None or not numbered:
            return cls(plan_id=plan_id)
        return cls(since, int(pk), plan_id)

    @classmethod
    def behind(cls, plan: Plan) -> Self:
        return cls(plan.status_at, plan.pk)

    @property
    def after(self) -> str:
        return f"{self.since.isoformat()}~{self.pk}" if self.since else ""

    @property
    def query(self) -> str:
        """With its question mark; empty for the first page of all."""
        words = {"after": self.after, "plan": self.plan_id}
        kept = urlencode({name: word for name, word in words.items() if word})
        return f"?{kept}" if kept else ""

    def narrow(self) -> Q:
        """The plans that are meant, in the order since when, id."""
        wanted = Q(plan_id=self.plan_id) if self.plan_id else Q()
        if self.since is None:
            return wanted
        later = Q(status_at__gt=self.since) | Q(status_at=self.since, pk__gt=self.pk)
        return wanted & Q(status_at__gte=self.since) & later


@dataclass(frozen=True, slots=True)
class Case:
    """One plan to look into. `barred`: why this person cannot say what became of it."""

    plan: Plan
    barred: str

    @property
    def changes(self) -> list[Change]:
        """What to look for at the target."""
        return changes(self.plan)

    @property
    def attempts(self) -> list[Attempt]:
        """Newest first: the last answer is what the person reads first."""
        return sorted(self.plan.attempts.all(), key=lambda attempt: -attempt.number)

    @property
    def telling(self) -> Attempt | None:
        """The newest attempt with an answer, else the newest: it is shown open."""
        answered = [attempt for attempt in self.attempts if attempt.http_status is not None]
        return next(iter(answered or self.attempts), None)

    @property
    def tone(self) -> str:
        return READINGS[self._kind][0] if self.plan.last_reading else ""

    @property
    def says(self) -> str:
        """The last reading in words; empty: it was never read."""
        return str(READINGS[self._kind][1]) if self.plan.last_reading else ""

    @property
    def read_at(self) -> datetime | None:
        """None for a moment that cannot be read."""
        try:
            return datetime.fromisoformat(str((self.plan.last_reading or {}).get("at")))
        except ValueError:
            return None

    @property
    def reason(self) -> str:
        """Why, where the word for the reading and its status do not say it already."""
        reading = self.plan.last_reading or {}
        said = (str(reading.get("kind")), f"status-{reading.get('http_status')}", "None")
        reason = str(reading.get("reason"))
        return "" if reason in said else reason

    @property
    def _kind(self) -> str:
        kind = str((self.plan.last_reading or {}).get("kind"))
        return kind if kind in READINGS else ReadKind.UNREADABLE


@dataclass(frozen=True, slots=True)
class Page:
    """`following` is the query of the next page; empty at the end."""

    cases: list[Case]
    following: str


def page(user: User, look: Look, size: int = PAGE) -> Page:
    """Longest first, by keyset: a fixed number of queries, whatever the length of the list."""
    rows = queue.unresolved(user).filter(look.narrow()).with_names().defer(*UNREAD)
    found = list(rows.prefetch_related("attempts")[: size + 1])
    mine = queue.reviewed_targets(user)
    cases = [Case(plan, _barred(user, plan, mine)) for plan in found[:size]]
    more = len(found) > size
    return Page(cases, Look.behind(found[size - 1]).query if more else "")


def _barred(user: User, plan: Plan, mine: frozenset[int]) -> str:
    """In words; the finding itself asks again, in its own transaction (SEC-9)."""
    if plan.agent.owner_id == user.pk:
        return _("You own {agent}: somebody else has to look.").format(agent=plan.agent.name)
    if plan.target_id not in mine:
        return _("A reviewer of {target} has to look.").format(target=plan.target.name)
    return ""


@dataclass(frozen=True, slots=True)
class Settled:
    """Who or what was first: the plan has left this page. `note` is theirs."""

    plan: Plan
    by: str
    at: datetime | None
    note: str


def settled(pk: int) -> Settled:
    """How a plan came to the status that it has now."""
    plan = Plan.objects.with_names().get(pk=pk)
    about = Event.objects.filter(target=plan.target.name, plan_id=plan.plan_id)
    event = about.filter(to_status=plan.status).order_by("-pk").first()
    if event is None:
        return Settled(plan, "", None, "")
    return Settled(plan, event.actor_label, event.at, str(event.details.get("note", "")))
