"""Checks of the plan token: a bearer value that says nothing, and that nobody can make."""

from __future__ import annotations

import base64
import binascii
import hashlib
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from countersign_agent.conformance.bench import Bench
from countersign_agent.conformance.planned import Planned

SAMPLE: Final = 4
# Bits: 22 characters of base64, 32 of hexadecimal.
FEWEST_BITS: Final = 128
# What four random tokens may have in common by chance.
BY_CHANCE: Final = 16
_ALPHABETS: Final = (
    (re.compile(r"[0-9]+"), 10),
    (re.compile(r"[0-9a-f-]+|[0-9A-F-]+"), 16),
    (re.compile(r"[A-Z2-7]+=*"), 32),
    (re.compile(r"[\x21-\x7e]+"), 64),
)


def opaque(bench: Bench) -> Iterator[str]:
    """SEC-20, SEC-38, A-2."""
    wish = bench.plan().inputs
    plans = [bench.plan(wish) for _ in range(SAMPLE)]
    yield from _strength([plan.token.reveal() for plan in plans])
    yield from _derived(plans[0])
    yield from _told_again(bench, plans[0])


def _strength(tokens: list[str]) -> Iterator[str]:
    """What is the same in every token is decoration; the rest has to be hard to guess."""
    lead = _shared(tokens)
    tail = _shared([token[lead:][::-1] for token in tokens])
    cores = [token[lead : len(token) - tail] for token in tokens]
    bits = min(_bits(core) for core in cores)
    if bits < FEWEST_BITS - BY_CHANCE:
        yield (
            f"tokens differ in {max(map(len, cores))} characters only: at most {bits:.0f} bits "
            f"to guess, and {FEWEST_BITS} are needed"
        )
    elif any(_close(*pair) for pair in itertools.combinations(cores, 2)):
        yield "two tokens in a row are nearly the same: they count up instead of being random"


def _shared(texts: list[str]) -> int:
    """How many characters they all begin with."""
    same = itertools.takewhile(lambda column: len(set(column)) == 1, zip(*texts, strict=False))
    return sum(1 for _ in same)


def _bits(core: str) -> float:
    if not core:
        return 0.0
    size = next((size for like, size in _ALPHABETS if like.fullmatch(core)), 64)
    repeated = Counter(core).most_common(1)[0][1] / len(core)
    # A text of one letter is long, and still says nothing.
    return 0.0 if repeated > 0.5 and len(core) > 8 else len(core) * math.log2(size)


def _close(one: str, two: str) -> bool:
    """Random texts of this length agree in few places."""
    agree = sum(a == b for a, b in zip(one, two, strict=False))
    return agree > 0.6 * min(len(one), len(two))


def _derived(plan: Planned) -> Iterator[str]:
    """Made of what anybody may read: the plan's ID, its fingerprint, its inputs."""
    token = plan.token.reveal()
    known = {"plan ID": plan.plan_id, "fingerprint": plan.fingerprint}
    for name, text in known.items():
        if text in token or token in text:
            yield f"the token is, or holds, the {name}"
    texts = {**known, "inputs": plan.inputs.decode()}
    parts = re.split(r"[.:~|]", token)
    for name, text in texts.items():
        if any(part in _made_of(text) for part in [token, *parts] if len(part) >= 16):
            yield f"the token is a hash or an encoding of the {name}: anybody can make it"
    if any(_says_something(part, plan) for part in parts):
        yield "the token can be decoded, and tells what the plan is about"


def _made_of(text: str) -> set[str]:
    raw = text.encode()
    found = {raw.hex(), *_base64(raw)}
    for name in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "blake2b", "sha3_256"):
        digest = hashlib.new(name, raw, usedforsecurity=False).digest()
        found |= {digest.hex(), digest.hex().upper(), *_base64(digest)}
        found |= {digest.hex()[:size] for size in (16, 20, 24, 32, 40)}
    return found


def _base64(raw: bytes) -> set[str]:
    texts = (base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode())
    return {form for text in texts for form in (text, text.rstrip("="))}


def _says_something(part: str, plan: Planned) -> bool:
    """Whether base64 hides JSON, the plan's ID, or its object: a token is no container."""
    try:
        raw = base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return False
    names = [plan.plan_id, *(each["target"] for each in plan.told["actions"])]
    if any(len(name) > 5 and name.encode() in raw for name in names):
        return True
    try:
        return isinstance(json.loads(raw), dict)
    except (ValueError, RecursionError):
        return False


def _told_again(bench: Bench, plan: Planned) -> Iterator[str]:
    answer = bench.read(plan.plan_id)
    again = answer.body.decode("utf-8", "replace")
    if plan.token.is_in(again):
        yield "the read-back holds the plan token: whoever may read could commit"
    if any(plan.token.is_in(value) for value in answer.headers.values()):
        yield "a header of the read-back holds the plan token"
    digest = hashlib.sha256(plan.token.reveal().encode()).hexdigest()
    if digest in again.lower():
        yield "the read-back holds the token's SHA-256, which is what others keep in its place"
