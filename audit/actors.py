"""Who did it. An event names its actor by kind, id and the label of that moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from django.utils.translation import gettext_noop as _

Kind = Literal["person", "agent", "system", "target"]


class Person(Protocol):
    """What the trail needs to know of a signed-in user."""

    pk: int

    def get_username(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Actor:
    kind: Kind
    id: str
    label: str


def person(user: Person) -> Actor:
    return Actor("person", str(user.pk), user.get_username())


def agent(pk: int, name: str) -> Actor:
    return Actor("agent", str(pk), name)


def target(pk: int, name: str) -> Actor:
    """The target's answer made it so (a 409, a read-back)."""
    return Actor("target", str(pk), name)


# A clock is never recorded as a person (S-2).
CLOCK = Actor("system", "clock", _("the clock"))
COMMITTER = Actor("system", "committer", _("the commit worker"))
REPLANNER = Actor("system", "replanner", _("the re-planner"))
VERIFIER = Actor("system", "verifier", _("verification"))
DELIVERER = Actor("system", "deliverer", _("webhook delivery"))
POLICIES = Actor("system", "policies", _("the policies"))
OPERATOR = Actor("system", "operator", _("an operator at the terminal"))
SEALER = Actor("system", "sealer", _("the sealer"))
