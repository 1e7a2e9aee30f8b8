"""What the fields become: inputs and constants, or a number that an input is added to. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from countersign_target import Problem
from countersign_target.ready.etag.config import Wish
from countersign_target.ready.etag.difference import Document, at


def wanted(wishes: Iterable[Wish], inputs: Mapping[str, Any], now: Document) -> dict[str, Any]:
    """Path and value of every field that is to be set; None removes it.

    A wish whose input is not given sets nothing.
    """
    return {
        wish.path: _value(wish, inputs, now)
        for wish in wishes
        if not wish.input or wish.input in inputs
    }


def _value(wish: Wish, inputs: Mapping[str, Any], now: Document) -> Any:
    if not wish.input:
        return wish.value
    value = inputs[wish.input]
    if wish.add:
        value += _number(now, wish.path)
    if wish.at_most:
        value = min(value, _number(now, wish.at_most))
    return value


def _number(now: Document, path: str) -> int:
    found = at(now, path)
    # A field that is not there counts from nothing only where the API says 0.
    if not isinstance(found, int) or isinstance(found, bool):
        raise Problem(422, "not-a-whole-number", f"{path} holds no whole number to reckon with.")
    return found
