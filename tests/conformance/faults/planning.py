"""The dry run and the read-back: plans that are none, and reads that tell something else."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.conformance.counting import Ask, Counting, Plan, Reply
from tests.conformance.faults.fault import Fault


class NoFingerprint(Counting):
    def told(self, plan: Plan) -> dict[str, Any]:
        return {k: v for k, v in super().told(plan).items() if k != "input_fingerprint"}


class TimeWithoutOffset(Counting):
    def facts(self, plan: Plan) -> dict[str, Any]:
        return super().facts(plan) | {"expires_at": plan.expires_at.isoformat()[:19]}


class NoTimeToDecide(Counting):
    window = timedelta(seconds=20)


class NothingPlanned(Counting):
    def facts(self, plan: Plan) -> dict[str, Any]:
        return super().facts(plan) | {"actions": []}


class OnePlanForAll(Counting):
    def make(self, inputs: dict[str, Any], raw: bytes, window: timedelta) -> Plan:
        known = next(iter(self.plans.values()), None)
        return known or super().make(inputs, raw, window)


class NameTwice(Counting):
    def dry_run(self, ask: Ask) -> Reply:
        reply = super().dry_run(ask)
        return Reply(200, reply.raw()[:-1] + b',"plan_id":"other"}')


class HtmlPlan(Counting):
    def dry_run(self, ask: Ask) -> Reply:
        super().dry_run(ask)
        return Reply(200, b"<h1>Planned!</h1>", {"Content-Type": "text/html"})


class DryRunWrites(Counting):
    def dry_run(self, ask: Ask) -> Reply:
        reply = super().dry_run(ask)
        if reply.status == 200:
            self.counters["stock"] += 1
        return reply


class ReadsAnotherPlan(Counting):
    """Plans again for every read."""

    def read_back(self, plan: Plan) -> dict[str, Any]:
        told = super().read_back(plan)
        return told | {"actions": [{**told["actions"][0], "to": 99}]}


class ReadsAnotherTime(Counting):
    def read_back(self, plan: Plan) -> dict[str, Any]:
        return super().read_back(plan) | {"expires_at": "2031-01-01T00:00:00Z"}


class RoundsInputs(Counting):
    def read_back(self, plan: Plan) -> dict[str, Any]:
        return super().read_back(plan) | {"inputs": {**plan.inputs, "add": 2}}


class ReadsAnything(Counting):
    def read(self, plan_id: str) -> Reply:
        if plan_id not in self.plans:
            return Reply(200, {"plan_id": plan_id, "status": "open"})
        return super().read(plan_id)


FAULTS = (
    Fault(NoFingerprint, "dry-run", "`input_fingerprint` is not a string"),
    Fault(TimeWithoutOffset, "dry-run", "`expires_at` is no RFC 3339 time with an offset"),
    Fault(NoTimeToDecide, "dry-run", "lives 20 s; people need 60 s"),
    Fault(NothingPlanned, "dry-run", "`actions` is no list of 1 to 20"),
    Fault(
        OnePlanForAll,
        "dry-run",
        "two dry runs were given one `plan_id`",
        frozenset({"opaque-token", "commit", "at-once"}),
    ),
    Fault(NameTwice, "dry-run", "not one strict JSON object"),
    Fault(HtmlPlan, "dry-run", "not one strict JSON object"),
    Fault(DryRunWrites, "dry-run", "does a dry run write?", alone=True),
    Fault(ReadsAnotherPlan, "read-back", "`actions` reads back differently"),
    Fault(ReadsAnotherTime, "read-back", "`expires_at` reads back as another time"),
    Fault(RoundsInputs, "read-back", "`inputs` reads back differently"),
    Fault(ReadsAnything, "read-back", "never given out answered 200 instead of 404"),
)
