"""Worlds that moved and plans that grew old, unnoticed or told wrongly."""

from __future__ import annotations

from tests.conformance.counting import Counting, Plan, Refusal, Reply
from tests.conformance.faults.fault import Fault


class IgnoresTheWorld(Counting):
    def has_moved(self, plan: Plan) -> bool:
        return False


class BareConflict(Counting):
    def moved(self, plan: Plan) -> Refusal:
        return Refusal(409, "state-changed")


class ConflictWithoutPath(Counting):
    def moved(self, plan: Plan) -> Refusal:
        members = super().moved(plan).members
        return Refusal(409, "state-changed", **members | {"changed": [{"field": "value"}]})


class ConflictWithoutTime(Counting):
    def moved(self, plan: Plan) -> Refusal:
        members = super().moved(plan).members
        return Refusal(409, "state-changed", **members | {"plan_created_at": None})


class ConflictIsServerError(Counting):
    def moved(self, plan: Plan) -> Refusal:
        return Refusal(500, "serialization-failure")


class ChangesItsMind(Counting):
    """Compares anew at every commit: when the world moves back, a refused plan is applied."""

    def settle(self, plan: Plan) -> Reply:
        if plan.status == "not_applied" and not self.has_moved(plan):
            plan.status = "open"
        return super().settle(plan)


class RefusedIsApplied(Counting):
    """A refused plan is applied when somebody insists with a new key."""

    def settle(self, plan: Plan) -> Reply:
        return self.apply(plan) if plan.status == "not_applied" else super().settle(plan)


class NeverExpires(Counting):
    def grow_old(self, plan: Plan) -> None:
        """Time passes elsewhere."""


class ExpiresOnlyInWords(Counting):
    """Reads back as expired, and is applied all the same."""

    def settle(self, plan: Plan) -> Reply:
        if plan.status == "open" and not self.has_moved(plan):
            return self.apply(plan)
        return super().settle(plan)


class LateIsConflict(Counting):
    def refused(self, refusal: Refusal) -> Reply:
        if refusal.code == "expired":
            refusal = Refusal(409, "too-late")
        return super().refused(refusal)


FAULTS = (
    Fault(IgnoresTheWorld, "conflict", "the plan was applied all the same"),
    Fault(BareConflict, "conflict", "no `changed` that names at least one path"),
    Fault(ConflictWithoutPath, "conflict", "`changed/0` of the 409 has no `path`"),
    Fault(ConflictWithoutTime, "conflict", "no `plan_created_at`"),
    Fault(ConflictIsServerError, "conflict", "“serialization-failure” instead of 409"),
    Fault(ChangesItsMind, "final", "was applied by a new key after it said “not_applied”"),
    Fault(RefusedIsApplied, "final", "was applied by a new key after it said “not_applied”"),
    Fault(NeverExpires, "expired", "reads back as “open”, not expired", alone=True),
    Fault(ExpiresOnlyInWords, "expiry", "past its `expires_at` was applied", alone=True),
    Fault(LateIsConflict, "expiry", "answered 409 “too-late” instead of 410", alone=True),
)
