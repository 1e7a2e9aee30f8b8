"""Fingerprints that depend on too much, on too little, or on nothing."""

from __future__ import annotations

import hashlib
import time
from typing import Any

from tests.conformance.counting import Counting, Plan, digest
from tests.conformance.faults.fault import Fault


class HashesTheBody(Counting):
    def fingerprint(self, inputs: dict[str, Any], raw: bytes, state: int) -> str:
        return f"sha256:{hashlib.sha256(raw + str(state).encode()).hexdigest()}"


class HashesTheMoment(Counting):
    def fingerprint(self, inputs: dict[str, Any], raw: bytes, state: int) -> str:
        return digest([inputs, state, time.time_ns()])


class HashesOnlyInputs(Counting):
    def fingerprint(self, inputs: dict[str, Any], raw: bytes, state: int) -> str:
        return digest(inputs)


class AnyFingerprint(Counting):
    def check_fingerprint(self, plan: Plan, fingerprint: object) -> None:
        """Whatever comes is right."""


FAULTS = (
    Fault(HashesTheBody, "key-order", "names in another order gave another fingerprint"),
    Fault(HashesTheMoment, "key-order", "byte for byte, over the same state"),
    Fault(HashesOnlyInputs, "state-moves", "the fingerprint stayed the same"),
    Fault(AnyFingerprint, "fingerprint-bound", "another fingerprint was carried out"),
)
