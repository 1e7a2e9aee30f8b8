"""Which step fails, how, and what the target does meanwhile: every pair of the three."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from audit.failpoints import STEPS
from tests.faults.modes import ASKING_MODES, COMMIT_MODES

ACTS: Final = ("raise", "kill", "stall")
# Modes that are an address of the target, beside those that are an order to it.
HOUSES: Final[Mapping[str, tuple[str, str]]] = {
    "refused at first": ("refusing", "well"),
    "500 for ever": ("hopeless", "500 stored, before"),
    "forgets its keys, lost": ("forgetful", "hang, after"),
    "forgets its keys, lost twice": ("forgetful", "lost, then lost"),
    "clock ahead, lost": ("ahead", "hang, after"),
    "clock behind, lost": ("behind", "hang, after"),
}

# Of a house that is given up sooner than the plain one.
NOT_PLAIN: Final = frozenset({"500 stored, before"})
COMMITS: Final = (*(mode for mode in COMMIT_MODES if mode not in NOT_PLAIN), *HOUSES)


def _steps(*prefixes: str) -> tuple[str, ...]:
    return tuple(step for step in STEPS if step.split(".")[0] in prefixes)


@dataclass(frozen=True, slots=True)
class Family:
    """Steps that meet the same kind of call to the target, and the modes of that call."""

    kind: str
    steps: Sequence[str]
    modes: Sequence[str]


FAMILIES: Final = {
    "commit": Family("commit", _steps("claim", "send", "answer", "result"), COMMITS),
    "decide": Family("commit", _steps("decide"), COMMITS),
    "read": Family("read", _steps("read"), tuple(ASKING_MODES)),
    "replan": Family("dry_run", _steps("replan"), tuple(ASKING_MODES)),
}
# No target is met there: each act once, while everything else goes on.
SEALS: Final = tuple((step, act) for step in _steps("seal") for act in ACTS)


@dataclass(frozen=True, slots=True)
class Row:
    """One plan's misfortune."""

    family: str
    step: str
    act: str
    mode: str

    @property
    def house(self) -> str:
        """The target's address: where plans are read, resends must not come first."""
        usual = "patient" if self.family == "read" else "plain"
        return HOUSES.get(self.mode, (usual, ""))[0]

    @property
    def ordered(self) -> str:
        """The mode as the target knows it."""
        return HOUSES.get(self.mode, ("", self.mode))[1]


def rows(family: str, part: int | None = None) -> Iterator[Row]:
    """Every step with every mode; the acts as in a Latin square, so every pair of the three is met.

    No covering array is smaller: the pairs of step and mode alone are as many. A `part` has every
    mode once and every step with every act; there are as many parts as steps.
    """
    steps, modes = FAMILIES[family].steps, FAMILIES[family].modes
    for down, step in enumerate(steps):
        for across, mode in enumerate(modes):
            if part is None or (across - down - part) % len(steps) == 0:
                act = ACTS[(down + across + across // len(steps)) % len(ACTS)]
                yield Row(family, step, act, mode)


LATER_LOST: Final = ("404, then lost", "413, then lost", "501, then lost")
# Not every three meet where every two do. These must: a true answer, held back too long (T-12).
THREES: Final = tuple(Row("commit", "answer.read", "stall", mode) for mode in LATER_LOST)


def every_row(part: int | None = None) -> list[Row]:
    found = [row for family in FAMILIES for row in rows(family, part)]
    return [*found, *(row for row in THREES if row not in found)]


CONFLICT: Final = frozenset({"conflicted"})
EXPIRED: Final = frozenset({"expired"})
REFUSED: Final = frozenset({"failed", "committed"})
# How a plan may end by its mode; by any other it is committed. More than the invariants ask for.
ENDS: Final[Mapping[str, frozenset[str]]] = {
    "409 changed": CONFLICT,
    "409 bare": CONFLICT,
    "silent, then 409 changed": CONFLICT,
    "410": EXPIRED,
    "silent, then 410": EXPIRED,
    # Refused; or, where the refusal was lost, found to be closed.
    "422": frozenset({"failed", "conflicted"}),
    # The answer may be lost with the request that nobody took.
    "early 413": REFUSED,
    # It counts if it is the first answer, and is heard in time (T-8, T-12).
    **dict.fromkeys(LATER_LOST, REFUSED),
    # It says "500" for ever and "open" when it is read: only a person can know.
    "500 for ever": frozenset({"unresolved"}),
    # Where the key may be forgotten before it can be sent again, too.
    "forgets its keys, lost": frozenset({"committed", "unresolved"}),
    "forgets its keys, lost twice": frozenset({"committed", "unresolved"}),
}


def ends(row: Row) -> frozenset[str]:
    """The statuses in which the row's plan may end."""
    if row.family == "replan":
        return CONFLICT
    if row.family == "read":
        return frozenset({"committed"})
    return ENDS.get(row.mode, frozenset({"committed"}))
