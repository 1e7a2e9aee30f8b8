"""The strict edge: JSON as every reader understands it alike, or a problem (A-18, SEC-31).

The standard library's C scanner does the reading, with hooks that refuse what it would let pass.
Only when something is wrong (or could be) a second, slower reading finds the place.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from plans import json_places
from plans.errors import (
    BodyTooLarge,
    DuplicateMember,
    InvalidUnicode,
    InvalidUtf8,
    MalformedJson,
    NegativeZero,
    NotAnObject,
    NulNotAllowed,
    NumberOutOfRange,
    Problem,
    StringTooLong,
    TooDeep,
    TooManyMembers,
    UnsafeInteger,
)

type JsonValue = bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None
type JsonObject = dict[str, JsonValue]

MAX_BYTES = 262_144
MAX_DEPTH = 32
MAX_MEMBERS = 2_000
MAX_STRING = 65_536
SAFE_INTEGER = 2**53 - 1

# Possessive, so that 256 KiB of quotes and backslashes are read once.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_DUBIOUS_ESCAPE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class _Limits:
    members: int
    string: int


def parse(
    raw: bytes,
    *,
    max_bytes: int = MAX_BYTES,
    max_depth: int = MAX_DEPTH,
    max_members: int = MAX_MEMBERS,
    max_string: int = MAX_STRING,
) -> JsonValue:
    """The value of a JSON text, or a Problem with a pointer where there is a place (A-18).

    `max_members` counts object members and array elements of the whole text, `max_string` the
    UTF-8 bytes of one string or name. Integers stay int, other numbers float.
    """
    if len(raw) > max_bytes:
        raise BodyTooLarge(f"The text is larger than {max_bytes} bytes.", limit=max_bytes)
    text = _decode(raw)
    _check_depth(raw, text, max_depth)
    limits = _Limits(max_members, max_string)
    if not _dubious(raw, limits):
        with suppress(ValueError, _Fault):
            return cast("JsonValue", _FAST.decode(text))
    return _read_slowly(text, limits)


def parse_object(raw: bytes) -> JsonObject:
    """As `parse`, for a request's body: anything but an object is NotAnObject (BI-11)."""
    value = parse(raw)
    if not isinstance(value, dict):
        raise NotAnObject(pointer="")
    return value


def parse_text(text: str, pointer_base: str = "") -> JsonObject:
    """The object in a text that is itself a member of a body, like `inputs` (A-1).

    Faults have the same codes as at the top level, status 422 and `pointer_base` as pointer.
    """
    try:
        # A lone surrogate becomes bytes that the parser refuses as such.
        return parse_object(text.encode(errors="surrogatepass"))
    except Problem as problem:
        raise problem.within(pointer_base)  # noqa: B904 (it is the same exception)


def escape(name: str | int) -> str:
    """One reference token of an RFC 6901 pointer."""
    return str(name).replace("~", "~0").replace("/", "~1")


def _decode(raw: bytes) -> str:
    """UTF-8 without a byte order mark: json.loads would take UTF-16 and marks (BI-10)."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        offset = error.start
    else:
        if text.startswith("\ufeff"):
            raise MalformedJson("Line 1, column 1: no byte order mark may stand before the text.")
        return text
    place = json_places.place(raw[:offset].decode())
    raise InvalidUtf8(f"{place}: the byte at offset {offset} is not valid UTF-8.")


def _check_depth(raw: bytes, text: str, max_depth: int) -> None:
    """Before the scanner sees the text: it recurses, and 100,000 levels end the process."""
    if raw.count(b"[") + raw.count(b"{") <= max_depth:
        return
    depth = 0
    for bracket in _STRING.sub(b"", raw).translate(None, _NOT_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > max_depth:
            place = json_places.too_deep(text, max_depth)
            raise TooDeep(f"{place}: objects and arrays go deeper than {max_depth} levels here.")


def _dubious(raw: bytes, limits: _Limits) -> bool:
    """Whether a fault that the hooks do not see is possible: cheap, and never a false no."""
    return (
        len(raw) > limits.string
        or raw.count(b",") + raw.count(b"{") + raw.count(b"[") > limits.members
        or _DUBIOUS_ESCAPE.search(raw) is not None
    )


class _Fault(Exception):
    """What is wrong with one scalar; the second reading keeps it in the tree, at its place."""

    def __init__(self, problem: type[Problem], detail: str | None = None) -> None:
        super().__init__()
        self.problem = problem
        self.detail = detail


class _Pairs(list[tuple[str, Any]]):
    """An object's members as they stand in the text, duplicates included."""


def _integer(digits: str) -> int:
    if digits == "-0":
        raise _Fault(NegativeZero)
    # The length first: int() refuses more than 4,300 digits with an exception of its own.
    if len(digits) > 17 or abs(int(digits)) > SAFE_INTEGER:
        raise _Fault(UnsafeInteger)
    return int(digits)


def _real(digits: str) -> float:
    number = float(digits)
    if number == 0:
        if re.search("[1-9]", re.split("[eE]", digits)[0]):
            raise _Fault(NumberOutOfRange)
        if digits[0] == "-":
            raise _Fault(NegativeZero)
    size = abs(number)
    if size == float("inf"):
        raise _Fault(NumberOutOfRange)
    # RFC 8785 writes these as integers, which we then could not read back.
    if SAFE_INTEGER < size < 1e21:
        raise _Fault(UnsafeInteger)
    return number


def _constant(name: str) -> NoReturn:
    raise _Fault(MalformedJson, f"{name} is not JSON.")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Fault(DuplicateMember)
    return members


def _kept[T](hook: Callable[[str], T]) -> Callable[[str], T | _Fault]:
    """The hook for the second reading: the fault becomes the value."""

    def keep(text: str) -> T | _Fault:
        try:
            return hook(text)
        except _Fault as fault:
            return fault

    return keep


_FAST = json.JSONDecoder(
    object_pairs_hook=_members, parse_int=_integer, parse_float=_real, parse_constant=_constant
)
_SLOW = json.JSONDecoder(
    object_pairs_hook=_Pairs,
    parse_int=_kept(_integer),
    parse_float=_kept(_real),
    parse_constant=_kept(_constant),
)


def _read_slowly(text: str, limits: _Limits) -> JsonValue:
    """The value, or the first fault in the order of the text, with its pointer."""
    try:
        tree = _SLOW.decode(text)
    except json.JSONDecodeError as error:
        told = json_places.broken(error)
    else:
        return _Inspection(limits).value(tree, "")
    # Raised out here, so that no traceback holds the text, which may hold a plan token.
    raise MalformedJson(told)


class _Inspection:
    """One walk over the tree of the second reading."""

    def __init__(self, limits: _Limits) -> None:
        self.limits = limits
        self.members = 0

    def value(self, node: Any, pointer: str) -> JsonValue:
        if isinstance(node, _Fault):
            raise node.problem(node.detail, pointer=pointer)
        if isinstance(node, str):
            self.string(node, pointer)
        elif isinstance(node, _Pairs):
            return dict(self.object(node, pointer))
        elif isinstance(node, list):
            self.count(len(node))
            return [self.value(item, f"{pointer}/{i}") for i, item in enumerate(node)]
        return cast("JsonValue", node)

    def object(self, pairs: _Pairs, pointer: str) -> Iterator[tuple[str, JsonValue]]:
        self.count(len(pairs))
        seen = set()
        for name, node in pairs:
            self.string(name, pointer)
            place = f"{pointer}/{escape(name)}"
            if name in seen:
                raise DuplicateMember(pointer=place)
            seen.add(name)
            yield name, self.value(node, place)

    def string(self, text: str, pointer: str) -> None:
        """A name's fault points at its object: a pointer with half a surrogate is no text."""
        if _SURROGATE.search(text):
            raise InvalidUnicode(pointer=pointer)
        if "\0" in text:
            raise NulNotAllowed(pointer=pointer)
        if len(text.encode()) > self.limits.string:
            limit = self.limits.string
            raise StringTooLong(
                f"A string is longer than {limit} bytes.", pointer=pointer, limit=limit
            )

    def count(self, more: int) -> None:
        self.members += more
        if self.members > self.limits.members:
            limit = self.limits.members
            raise TooManyMembers(
                f"The text has more than {limit} members and elements.", pointer="", limit=limit
            )
