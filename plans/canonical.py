"""RFC 8785 texts and the hashes over them: what two parties must agree about, byte for byte."""

import hashlib

import rfc8785

from plans.strict_json import JsonValue


def jcs(value: JsonValue) -> bytes:
    """The RFC 8785 text of a value that the strict parser made (A-1, B-2)."""
    return rfc8785.dumps(value)


def sha256_hex(data: bytes) -> str:
    """SHA-256 as 64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


def inputs_hash(raw: bytes) -> str:
    """The hash of an intent's inputs: over the text as it was sent, not over its meaning (B-2)."""
    return sha256_hex(raw)


def jcs_equal(left: JsonValue, right: JsonValue) -> bool:
    """Whether two values have the same RFC 8785 text: 1 equals 1.0, true never equals 1 (T-2)."""
    return jcs(left) == jcs(right)
