"""The walk along seals and rows: one pass, constant memory but for 32 bytes a seal (L-3)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

from .formats import (
    ENTRY,
    GENESIS,
    NOWHERE,
    Head,
    Keys,
    Place,
    Row,
    SealRecord,
    entry,
    merkle_root,
    place,
)
from .report import Report

LONGEST_GAP: Final = 1_000_000


class Walk:
    """Compares rows with seals; both come in the trail's order.

    `after`: the seal to begin behind, taken on trust; its predecessors are not looked at.
    """

    def __init__(self, rows: Iterator[Row], keys: Keys, after: SealRecord | None = None) -> None:
        self.rows = rows
        self.keys = keys
        self.report = Report(from_seal=after.number + 1 if after else 1)
        self.last = after
        self.sealed_to: Place = after.last if after else NOWHERE
        self.hashes = bytearray()
        # The first seal of every era, to say which era a checkpoint's number now belongs to.
        self.eras: list[tuple[int, int]] = []
        self._row = next(rows, None)

    def go(self, seals: Iterable[SealRecord], now: int, max_unsealed_seconds: float) -> Report:
        """Look at everything; `now` in microseconds since 1970."""
        for seal in seals:
            self._check_seal(seal)
            self._check_rows(seal)
            self._step(seal)
        self._count_unsealed(now, max_unsealed_seconds)
        return self.report

    def _check_seal(self, seal: SealRecord) -> None:
        """Number, link, hash, signature and its own manifest; one finding for one seal."""
        expected = self.last.number + 1 if self.last else 1
        if seal.number > expected:
            missing = f"seals {expected} to {seal.number - 1} are missing"
            self.report.add("deleted", missing, seal=expected)
        if objection := self._objection(seal, expected):
            self.report.add("forged", f"seal {seal.number}: {objection}", seal=seal.number)

    def _objection(self, seal: SealRecord, expected: int) -> str:
        if seal.number < expected:
            return f"its number should be {expected}"
        if hashlib.sha256(seal.header()).hexdigest() != seal.hash:
            return "its hash is not that of its contents"
        if wrong := self.keys.objection(seal.key_id, seal.signature, seal.header()):
            return wrong
        link = (self.last.hash, self.last.total) if self.last else (GENESIS, 0)
        if seal.number == expected and (seal.previous, seal.total - seal.count) != link:
            return "it does not continue the seal before it"
        return self._manifest_objection(seal)

    def _manifest_objection(self, seal: SealRecord) -> str:
        if not seal.count or len(seal.manifest) != seal.count * ENTRY.size:
            return "its manifest has not as many entries as it says"
        if merkle_root(seal.manifest) != seal.root:
            return "its manifest is not what was signed"
        places = [(seal.era, xid, pk) for xid, pk, _ in ENTRY.iter_unpack(seal.manifest)]
        ordered = all(left < right for left, right in pairwise(places))
        ends = (seal.era, seal.first_xid, seal.first_id), seal.last
        if not ordered or (places[0], places[-1]) != ends or places[0] <= self.sealed_to:
            return "its events are not in the trail's order"
        return ""

    def _check_rows(self, seal: SealRecord) -> None:
        """Merge the manifest with the rows up to the seal's end."""
        whole = len(seal.manifest) // ENTRY.size * ENTRY.size
        for xid, pk, digest in ENTRY.iter_unpack(seal.manifest[:whole]):
            here = (seal.era, xid, pk)
            self._pass_inserted(here)
            row = self._row
            if row is None or place(row) != here:
                text = f"event {pk} (era {seal.era}, xid {xid}) of seal {seal.number} is missing"
                self.report.add("deleted", text, event=pk, seal=seal.number)
                continue
            if entry(row) != ENTRY.pack(xid, pk, digest):
                text = f"event {pk} ({row[4]}) is not what seal {seal.number} closed"
                self.report.add("edited", text, event=pk, seal=seal.number)
            self.report.events += 1
            self._row = next(self.rows, None)

    def _pass_inserted(self, here: Place) -> None:
        """Rows before `here` that no seal names: put in after the range was closed."""
        while self._row is not None and place(self._row) < here:
            era, xid, pk = place(self._row)
            text = f"event {pk} (era {era}, xid {xid}) stands in a closed range, under no seal"
            self.report.add("inserted", text, event=pk)
            self._row = next(self.rows, None)

    def _step(self, seal: SealRecord) -> None:
        if not self.eras or self.eras[-1][1] != seal.era:
            self.eras.append((seal.number, seal.era))
        if self.last is None and seal.number == 1:
            self.report.trail = seal.hash
        self._remember(seal)
        self.last, self.sealed_to = seal, max(self.sealed_to, seal.last)
        self.report.seals += 1
        self.report.sealed_at = seal.at

    def _remember(self, seal: SealRecord) -> None:
        """Its hash, at the place of its number; the gap that missing seals leave is bounded."""
        at = (seal.number - self.report.from_seal) * 32
        gap = at - len(self.hashes)
        if 0 <= gap <= LONGEST_GAP * 32:
            self.hashes += bytes(gap) + hashlib.sha256(seal.header()).digest()

    def _count_unsealed(self, now: int, max_seconds: float) -> None:
        report = self.report
        while self._row is not None:
            era, xid, pk = place(self._row)
            if (era, xid, pk) <= self.sealed_to:
                text = f"event {pk} (era {era}, xid {xid}) stands in a closed range, under no seal"
                report.add("inserted", text, event=pk)
            else:
                at = self._row[3] or ""
                report.unsealed += 1
                if at.lstrip("-").isdecimal():
                    report.unsealed_since = min(int(at), report.unsealed_since or int(at))
            self._row = next(self.rows, None)
        age = (now - report.unsealed_since) / 1_000_000 if report.unsealed_since else 0.0
        if age > max_seconds:
            report.add("unsealed", f"{report.unsealed} events wait for a seal since {age:.0f} s")


def check_heads(
    walk: Walk, lines: Iterable[bytes], *, trail: str, database: str, required: bool
) -> None:
    """Compare the lines of a checkpoint file with the seals that `walk` saw.

    `trail`: the hash of the trail's first seal, "" without one; `database`: where it is, "" if
    unknown. `required`: that no checkpoint is of this trail is a finding, not a note.
    """
    report, strangers, unreadable = walk.report, 0, 0
    for number, line in enumerate(lines, start=1):
        try:
            head = Head.read(json.loads(line))
        except (ValueError, KeyError, TypeError):
            unreadable += 1
            continue
        if wrong := walk.keys.objection(head.key_id, head.signature, head.header()):
            report.add("forged", f"line {number} of the checkpoints: {wrong}", seal=head.number)
        elif head.trail == trail:
            report.checkpoints += 1
            _check_head(walk, head)
        elif database and head.place == database:
            text = f"seal {head.number} was exported from a trail that is gone from this database"
            report.add("truncated", text, seal=head.number)
        else:
            strangers += 1
    if unreadable:
        report.notes.append(f"{unreadable} lines are no checkpoints and were left out")
    _judge_strangers(report, strangers, required)


def _judge_strangers(report: Report, strangers: int, required: bool) -> None:
    if required and not report.checkpoints:
        report.add("truncated", "no checkpoint of the file is of this trail")
    elif strangers:
        report.notes.append(f"{strangers} checkpoints are of other trails and were left out")


def _check_head(walk: Walk, head: Head) -> None:
    """The trail must still hold the seal, at its number and with its hash."""
    last = walk.last.number if walk.last else 0
    first = walk.report.from_seal
    if head.number < first:
        return
    at = (head.number - first) * 32
    if head.number <= last and walk.hashes[at : at + 32].hex() == head.hash:
        return
    text = f"era {head.era} was exported up to seal {head.number}"
    era = next((era for begins, era in reversed(walk.eras) if begins <= head.number), head.era)
    if head.number > last:
        text += f", the trail ends with seal {last}"
    elif era != head.era:
        text += f", which the trail has in era {era}: the end of era {head.era} was lost"
    else:
        text += ", the trail has another seal of this number: cut off or rewritten"
    walk.report.add("truncated", text, seal=head.number)
