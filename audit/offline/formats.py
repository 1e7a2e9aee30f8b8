"""What is signed, byte for byte: canonical rows, seals and checkpoints (L-2). See docs/audit.md.

Every change of these bytes needs another label ("... v2") beside the old one: old seals stay.
"""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

# Every column of an event as the text that PostgreSQL prints for it; `at` in whole microseconds
# since 1970. The first three are its place in the trail.
FIELDS: Final = (
    "era",
    "xid",
    "id",
    "at",
    "action",
    "actor_kind",
    "actor_id",
    "actor_label",
    "agent",
    "target",
    "operation",
    "plan_id",
    "intent_id",
    "task_id",
    "title",
    "from_status",
    "to_status",
    "ip",
    "request_id",
    "details",
)
ENTRY: Final = struct.Struct(">qq32s")
GENESIS: Final = "0" * 64


type Row = Sequence[str | None]
type Place = tuple[int, int, int]

NOWHERE: Final[Place] = (-1, 0, 0)


def packed(label: str, values: Iterable[str | int | None]) -> bytes:
    """`<label>\\n`, then `<bytes>:<UTF-8>,` for each text and `~` for NULL: never ambiguous."""
    parts = [label.encode(), b"\n"]
    for value in values:
        if value is None:
            parts.append(b"~")
        else:
            text = str(value).encode("utf-8", "surrogatepass")
            parts.append(b"%d:%b," % (len(text), text))
    return b"".join(parts)


def entry(row: Row) -> bytes:
    """48 bytes of a seal's manifest: xid, id, SHA-256 of the canonical row."""
    canonical = packed("countersign event v1", row)
    return ENTRY.pack(int(row[1] or 0), int(row[2] or 0), hashlib.sha256(canonical).digest())


def place(row: Row) -> Place:
    """Where a row stands in the trail."""
    return int(row[0] or 0), int(row[1] or 0), int(row[2] or 0)


def merkle_root(manifest: bytes) -> str:
    """The RFC 9162 tree over a manifest's entries, in hex; of at least one entry."""
    level = [hashlib.sha256(b"\0" + each).digest() for each in chopped(manifest)]
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        above = [hashlib.sha256(b"\1" + left + right).digest() for left, right in pairs]
        level = above + level[-1:] if len(level) % 2 else above
    return level[0].hex()


def chopped(manifest: bytes) -> Iterator[bytes]:
    return (manifest[at : at + ENTRY.size] for at in range(0, len(manifest), ENTRY.size))


def key_id(public: bytes) -> str:
    """The name of a key: the first 16 hex digits of the SHA-256 of its 32 bytes."""
    return hashlib.sha256(public).hexdigest()[:16]


class Keys:
    """The public keys that are trusted, by name."""

    def __init__(self, public: Iterable[bytes]) -> None:
        self._keys = {key_id(raw): Ed25519PublicKey.from_public_bytes(raw) for raw in public}

    def objection(self, name: str, signature: str, signed: bytes) -> str:
        """Why this signature proves nothing, or ""."""
        if name not in self._keys:
            return f"it is signed with an unknown key, {name[:80]!r}"
        try:
            self._keys[name].verify(bytes.fromhex(signature), signed)
        except (InvalidSignature, ValueError):
            return f"its signature is not one of key {name}"
        return ""


@dataclass(frozen=True, slots=True)
class SealRecord:
    """A seal: everything but `hash`, `signature` and `manifest` is in the signed header."""

    number: int
    era: int
    first_xid: int
    first_id: int
    last_xid: int
    last_id: int
    count: int
    total: int
    root: str
    previous: str
    key_id: str
    at: int
    hash: str = ""
    signature: str = ""
    manifest: bytes = b""

    def header(self) -> bytes:
        names = [each.name for each in fields(self)][:12]
        return packed("countersign seal v1", [getattr(self, name) for name in names])

    @property
    def last(self) -> Place:
        return self.era, self.last_xid, self.last_id

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        """From a line of `seals.jsonl`; ValueError or KeyError for anything else."""
        given = {each.name: each.type for each in fields(cls)}
        read: dict[str, Any] = {
            name: int(values[name]) if kind == "int" else str(values[name])
            for name, kind in given.items()
        }
        return cls(**read | {"manifest": base64.b64decode(read["manifest"], validate=True)})


@dataclass(frozen=True, slots=True)
class Head:
    """A checkpoint: the newest seal's hash, signed to stand alone wherever it is kept.

    `trail` is the hash of the trail's first seal, `place` the database it was made in.
    """

    trail: str
    place: str
    era: int
    number: int
    hash: str
    count: int
    at: int
    key_id: str
    signature: str = ""

    def header(self) -> bytes:
        names = [each.name for each in fields(self)][:8]
        return packed("countersign checkpoint v1", [getattr(self, name) for name in names])

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        read: dict[str, Any] = {
            each.name: int(values[each.name]) if each.type == "int" else str(values[each.name])
            for each in fields(cls)
        }
        return cls(**read)
