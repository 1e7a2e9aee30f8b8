"""Policies as an operator reads them on the settings page: what each asks for, in words (B-7)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.translation import gettext as _

from approvals.models import Policy
from approvals.policies import conditions
from approvals.policies.demands import Demands, Match, added_up
from approvals.standing import asks, people


@dataclass(frozen=True, slots=True)
class Rule:
    """`version` is that of a plan which this policy alone matches; `fault`: CEL refuses it."""

    policy: Policy
    demands: Demands
    fault: str

    @property
    def version(self) -> str:
        return self.demands.version

    @property
    def asks(self) -> list[str]:
        """What it adds to a plan on which the condition holds; never empty."""
        return list(self._asks())

    def _asks(self) -> Iterator[str]:
        if self.policy.deny:
            yield _("nobody can approve it")
            return
        yield people(self.demands) or _("one reviewer of the target")
        yield from asks(self.demands)
        if self.policy.raise_risk:
            yield _("its risk is at least {risk}").format(risk=_(self.policy.raise_risk))


def rules() -> list[Rule]:
    """Every policy, those in force first; one query."""
    found = Policy.objects.order_by("-active", "name")
    return [
        Rule(policy, added_up([Match(policy)]), conditions.complaint(policy.when) or "")
        for policy in found
    ]
