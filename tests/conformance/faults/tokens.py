"""Plan tokens that can be guessed, or that tell something, or are told."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
from typing import Any

from tests.conformance.counting import Counting, Plan, Reply
from tests.conformance.faults.fault import Fault


class HashedId(Counting):
    def token(self, plan_id: str, fingerprint: str, inputs: dict[str, Any]) -> str:
        return hashlib.sha256(plan_id.encode()).hexdigest()


class CountedToken(Counting):
    def __init__(self) -> None:
        super().__init__()
        self.next = itertools.count(1_000_000)

    def token(self, plan_id: str, fingerprint: str, inputs: dict[str, Any]) -> str:
        return f"secret-plan-token-of-the-target-{next(self.next)}"


class TellingToken(Counting):
    def token(self, plan_id: str, fingerprint: str, inputs: dict[str, Any]) -> str:
        told = json.dumps({"id": plan_id, "inputs": inputs}).encode()
        return base64.urlsafe_b64encode(told).decode().rstrip("=")


class TokenWithId(Counting):
    def token(self, plan_id: str, fingerprint: str, inputs: dict[str, Any]) -> str:
        return f"{plan_id}.{super().token(plan_id, fingerprint, inputs)}"


class TokenReadBack(Counting):
    def read_back(self, plan: Plan) -> dict[str, Any]:
        return super().read_back(plan) | {"plan_token": plan.token}


class TokenInHeader(Counting):
    def read(self, plan_id: str) -> Reply:
        reply = super().read(plan_id)
        return Reply(200, reply.body, {"Location": f"/commit?token={self.plans[plan_id].token}"})


FAULTS = (
    Fault(HashedId, "opaque-token", "a hash or an encoding of the plan ID"),
    Fault(CountedToken, "opaque-token", "bits to guess, and 128 are needed"),
    Fault(TellingToken, "opaque-token", "can be decoded, and tells what the plan is about"),
    Fault(TokenWithId, "opaque-token", "is, or holds, the plan ID"),
    Fault(TokenReadBack, "opaque-token", "the read-back holds the plan token"),
    Fault(TokenInHeader, "opaque-token", "a header of the read-back holds the plan token"),
)
