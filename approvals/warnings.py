"""How much of its time to decide a plan has used up: people are warned at half and at a fifth."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from django.utils.translation import gettext_lazy


class Stage(StrEnum):
    """What is left of the window, from the plan's arrival to `decide_by`."""

    PLENTY = ""
    HALF = "half"
    FIFTH = "fifth"


WORDS: Final = {
    Stage.PLENTY: "",
    Stage.HALF: gettext_lazy("Half left"),
    Stage.FIFTH: gettext_lazy("Last fifth"),
}


def stage(left_ms: int, window_ms: int) -> Stage:
    """The same arithmetic as countdown.js; a window that is no window warns at once."""
    if left_ms * 5 <= window_ms:
        return Stage.FIFTH
    return Stage.HALF if left_ms * 2 <= window_ms else Stage.PLENTY


def words(stages: Iterable[Stage]) -> str:
    """What the title of a list says: of its most urgent row."""
    found = set(stages)
    return next((str(WORDS[each]) for each in (Stage.FIFTH, Stage.HALF) if each in found), "")
