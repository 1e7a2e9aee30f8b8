"""One operation on an API with ETags: the plan is a difference, the commit a conditional write.

The API and the store of plans are two systems, so no transaction holds the effect and its key. What
holds instead: a strong ETag names one state, so of any number of writes that carry the same
`If-Match` at most one is carried out. An answer that got lost is settled by what `settle_by` says
proves it; where nothing proves it, the outcome stays unknown, and is told so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from countersign_target import (
    Action,
    Applied,
    Later,
    Outcome,
    Plan,
    Planned,
    Problem,
    SendAgain,
    State,
    Unknown,
    not_allowed,
    nothing_to_change,
)
from countersign_target.ready.etag import difference
from countersign_target.ready.etag.config import ApiSettings, Change, SettleBy
from countersign_target.ready.etag.http import Api, NoAnswer, NotSent
from countersign_target.ready.etag.judging import (
    as_planned,
    done,
    marked,
    moved,
    refused,
    result,
    unknown,
)
from countersign_target.ready.etag.reading import Seen, look_at
from countersign_target.ready.etag.wishes import wanted

MOST_ACTIONS: Final = 20


@dataclass(frozen=True)
class Noted(Action):
    """An action with a word beside it, which people see where they decide."""

    note: str

    def body(self) -> dict[str, Any]:
        """As it goes out, with what happens when no answer comes."""
        return {**super().body(), "if_unanswered": self.note}


@dataclass(frozen=True, slots=True)
class Etagged:
    """The two functions of an operation, and the look that settles what got no answer."""

    change: Change
    settings: ApiSettings
    api: Api = field(repr=False)

    def plan(self, inputs: dict[str, Any], state: State) -> Planned:
        """GET the object and say what would be another value afterwards."""
        if found := self.change.inputs.complaints(inputs):
            raise not_allowed(*found)
        name, seen = self._named(inputs), self._seen(inputs)
        state.cover(name, self._covered(seen))
        patch = difference.patch_of(wanted(self.change.wishes, inputs, seen.document))
        after = difference.merged(seen.document, patch)
        actions = difference.actions(name, seen.document, after)
        if not actions:
            raise nothing_to_change(f"{name} is as wished already.")
        if len(actions) > MOST_ACTIONS:
            raise Problem(422, "too-many-changes", f"More than {MOST_ACTIONS} fields would change.")
        details = {"etag": seen.etag, "document": seen.document, "patch": patch}
        return Planned([*self._actions(actions)], details)

    def _actions(self, found: list[dict[str, Any]]) -> Iterator[Action]:
        """The first one carries what the reviewer should know: the limits of this target."""
        for number, each in enumerate(found):
            values = (each["op"], each["target"], each["field"], each["from"], each["to"])
            yield Action(*values) if number else Noted(*values, note=self._limits())

    def _limits(self) -> str:
        """How it is found out whether a write was carried out whose answer got lost."""
        match self.settings.settle_by:
            case SettleBy.IDEMPOTENCY_KEY:
                return "sent again with the same key, which the API knows"
            case SettleBy.MARKER:
                return f"looked up in the field {self.settings.marker}, which is set as well"
            case SettleBy.STATE:
                return "taken as done when these fields hold these values"
        return "sent again while the object is the same; else a person has to look"

    def _named(self, inputs: Mapping[str, Any]) -> str:
        try:
            self.change.address(inputs)
            return self.change.names(inputs)
        except ValueError:
            raise not_allowed(("", "an input leaves the path of the API")) from None

    def _seen(self, inputs: Mapping[str, Any]) -> Seen:
        return look_at(self.api, self.change.address(inputs), self.change.names(inputs))

    def _covered(self, seen: Seen) -> dict[str, Any]:
        """Every field but those that say nothing; the ETag guards these all the same."""
        silent = (*self.change.ignored, *filter(None, [self.settings.marker]))
        return {
            path: value
            for path, value in difference.leaves(seen.document).items()
            if not difference.is_below(path, silent)
        }

    def apply(self, plan: Plan) -> Outcome:
        """Send the write, on the condition that the object is still as it was planned from."""
        again = plan.sends > 1
        try:
            answer = self.api.write(
                self.change.method,
                self.change.address(plan.inputs),
                self._body(plan),
                plan.details["etag"],
                plan.plan_id if self.settings.settle_by is SettleBy.IDEMPOTENCY_KEY else "",
            )
        except NotSent as fault:
            raise Later(f"The API cannot be reached: {fault}.") from None
        except NoAnswer as fault:
            return unknown(str(fault))
        if 200 <= answer.status < 300:
            return done(plan, answer, self.settings, partial(self._seen, plan.inputs))
        if again:
            # It may be refused because of what the earlier try did: only the state can tell.
            return self.look(plan)
        look = partial(self._seen, plan.inputs)
        return refused(plan, answer, self.change, self.settings, look)

    def _body(self, plan: Plan) -> dict[str, Any]:
        patch = plan.details["patch"]
        if self.settings.marker:
            patch = difference.joined_patches(
                patch, difference.patch_of({self.settings.marker: plan.plan_id})
            )
        if self.change.method == "PATCH":
            return dict(patch)
        whole = difference.merged(plan.details["document"], patch)
        return difference.without(whole, self.change.read_only)

    def look(self, plan: Plan) -> Outcome:
        """What the API's state says about a write whose answer nobody has. Sends nothing."""
        if self.settings.settle_by is SettleBy.IDEMPOTENCY_KEY:
            # The API answers the same key with what came of it; a state proves less than that.
            return SendAgain()
        try:
            seen = self._seen(plan.inputs)
        except Problem as problem:
            return Unknown(f"The state could not be read: {problem.detail}")
        if seen.etag == plan.details["etag"]:
            return SendAgain()
        return self._moved(plan, seen)

    def _moved(self, plan: Plan, seen: Seen) -> Outcome:
        """The object is another one now: by this plan's write, or by somebody else's?"""
        settings = self.settings
        match settings.settle_by:
            case SettleBy.MARKER:
                if marked(plan, seen, settings):
                    return Applied(result(plan, seen, settings, "marker"))
                was = difference.at(plan.details["document"], settings.marker)
                # Never seen there, it may be a field that the API drops: that proves nothing.
                if was is not None and was == difference.at(seen.document, settings.marker):
                    return moved(plan, seen, self.change, settings)
            case SettleBy.STATE if as_planned(plan, seen):
                return Applied(result(plan, seen, settings, "state"))
        return Unknown(
            f"{plan.covers[0]} has moved since, and nothing proves by whom: look at it, and say"
            " what you found."
        )
