"""What the head of every page says: where one may go, and how much waits there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.contrib.auth.models import User
from django.http import HttpRequest  # noqa: TID251  # a context processor is part of the edge
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from approvals import desk, queue
from approvals.access import Role
from plans import emergency


@dataclass(frozen=True, slots=True)
class Navigation:
    """Counts are capped (`queue.CAP`); `review` is what this person can see to right now.

    `owner`: an agent is this person's.
    """

    section: str
    roles: frozenset[str]
    review: int
    replans: int
    unresolved: int
    owner: bool

    @property
    def role(self) -> str:
        """The one word beside the name: the strongest role, for people who have several."""
        order = (Role.OPERATORS, Role.MANAGERS, Role.LEADS, Role.REVIEWERS)
        return next((str(_ROLES[role]) for role in order if role in self.roles), _("guest"))

    @property
    def audit(self) -> bool:
        return bool(self.roles & {Role.MANAGERS, Role.OPERATORS})

    @property
    def settings(self) -> bool:
        return bool(self.roles & {Role.OPERATORS, Role.LEADS})


_ROLES: Final = {
    Role.OPERATORS: gettext_lazy("operator"),
    Role.MANAGERS: gettext_lazy("manager"),
    Role.LEADS: gettext_lazy("lead"),
    Role.REVIEWERS: gettext_lazy("reviewer"),
}
# Pages that are read while one is "in" another section of the head.
SECTIONS = {
    "plan": "review",
    "decision": "review",
    "comment": "review",
    "insights": "audit",
    "finding": "unresolved",
    "reading": "unresolved",
    "contract": "settings",
    "webhooks": "settings",
    "notices": "settings",
    "notice_webhook": "settings",
    "notice_rotation": "settings",
    "webhook": "settings",
    "webhook_addition": "settings",
    "webhook_rotation": "settings",
}


def navigation(request: HttpRequest) -> dict[str, Any]:
    """`navigation`, the emergency `stop` and the names of the targets whose plans this person
    sees (SEC-4), each read only where a template shows it."""
    return {
        "navigation": SimpleLazyObject(lambda: _navigation(request)),
        "stop": SimpleLazyObject(emergency.current),
        "seen_targets": SimpleLazyObject(lambda: _seen_targets(request)),
    }


def _seen_targets(request: HttpRequest) -> frozenset[str]:
    """One query for a page, however many plans it could link to."""
    user = getattr(request, "user", None)
    if not isinstance(user, User) or not user.is_active:
        return frozenset()
    return frozenset(queue.seen_targets(user).values_list("name", flat=True))


def _navigation(request: HttpRequest) -> Navigation | None:
    user = getattr(request, "user", None)
    return navigation_of(request, desk.head(user)) if isinstance(user, User) else None


def navigation_of(request: HttpRequest, head: desk.Head) -> Navigation:
    """The same from numbers that a page has read already."""
    name = getattr(request.resolver_match, "url_name", None) or ""
    return Navigation(
        section=SECTIONS.get(name, name),
        roles=head.roles,
        review=head.review,
        replans=head.replans,
        unresolved=head.unresolved,
        owner=head.owner,
    )
