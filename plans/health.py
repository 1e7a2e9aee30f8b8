"""How a target has answered lately: the share of failed calls, and its clock (C-2).

Written beside the work, never inside its transaction: at once when the target turns from well to
ill or back, else at most every few seconds; a failure to write it stops nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog
from django.db import DatabaseError, InterfaceError, connection

from plans.exchanges import Answer, Exchange
from plans.outcomes import CREDENTIAL_REFUSED

log = structlog.get_logger(__name__)

HALF_LIFE_SECONDS: Final = 300.0
WRITE_EVERY: Final = 5.0
# A target that answers every other call would else be written at every one.
TURN_EVERY: Final = 1.0
# Seconds between two clocks that a header of whole seconds can tell.
TELLABLE_SKEW: Final = 2.0
# Seconds between two clocks that say nothing yet (C-2).
TOLERATED_SKEW: Final = 60.0
TOLERATED_SHARE: Final = 0.2
# Less than half a call is left: what was, is too long ago to say anything.
FORGOTTEN: Final = 0.5

_REFUSALS: Final = frozenset(f"HTTP {status}" for status in CREDENTIAL_REFUSED)

_DECAY = f"""power(0.5, greatest(0,
    extract(epoch FROM statement_timestamp() - h.updated_at)::float8) / {HALF_LIFE_SECONDS})"""
_ADD: Final = f"""
    INSERT INTO plans_targethealth AS h
        (target_id, calls, faults, skew_seconds, last_fault, last_fault_at, updated_at)
    VALUES (%(target)s, %(calls)s, %(faults)s, %(skew)s, %(fault)s,
        CASE WHEN %(faults)s > 0 THEN clock_timestamp() END, clock_timestamp())
    ON CONFLICT (target_id) DO UPDATE SET
        calls = h.calls * {_DECAY} + excluded.calls,
        faults = h.faults * {_DECAY} + excluded.faults,
        skew_seconds = coalesce(excluded.skew_seconds, h.skew_seconds),
        last_fault = CASE WHEN excluded.faults > 0 THEN excluded.last_fault ELSE h.last_fault END,
        last_fault_at = coalesce(excluded.last_fault_at, h.last_fault_at),
        updated_at = excluded.updated_at
"""
_READ: Final = f"""
    SELECT target_id, calls * {_DECAY}, faults * {_DECAY}, skew_seconds, last_fault,
        last_fault_at
    FROM plans_targethealth AS h WHERE target_id = ANY(%s)
"""


@dataclass(frozen=True, slots=True)
class Health:
    """`calls`: how many lately, as a weight; `fault`: the last one, in a word."""

    calls: float = 0.0
    faults: float = 0.0
    skew_seconds: float | None = None
    fault: str = ""
    fault_at: datetime | None = None

    @property
    def refused_at(self) -> datetime | None:
        """When it refused the app's credential, if that is what went wrong last."""
        return self.fault_at if self.fault in _REFUSALS else None

    @property
    def known(self) -> bool:
        """Whether anything was asked of it lately."""
        return self.calls >= FORGOTTEN

    @property
    def share(self) -> float:
        """Of the calls lately, how many failed: 0 to 1."""
        return min(1.0, self.faults / self.calls) if self.known else 0.0

    @property
    def percent(self) -> int:
        return round(self.share * 100)

    @property
    def failing(self) -> bool:
        return self.share > TOLERATED_SHARE and self.faults >= FORGOTTEN

    @property
    def off_step(self) -> bool:
        """Whether its clock shows another time: `Date` has whole seconds and travels a while."""
        return self.skew_seconds is not None and abs(self.skew_seconds) >= TELLABLE_SKEW

    @property
    def skewed(self) -> bool:
        return self.skew_seconds is not None and abs(self.skew_seconds) > TOLERATED_SKEW

    @property
    def well(self) -> bool:
        return not self.failing and not self.skewed


@dataclass(slots=True)
class _Unwritten:
    """What this process has seen of a target since it wrote last."""

    calls: int = 0
    faults: int = 0
    fault: str = ""
    skew: float | None = None
    ill: bool | None = None
    written: float = float("-inf")


_unwritten: dict[int, _Unwritten] = {}
_lock = threading.Lock()


def note(target_id: int, exchange: Exchange) -> None:
    """Remember how a target answered. Never raises; the caller holds no transaction."""
    due = _take(target_id, exchange)
    if due is None:
        return
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                _ADD,
                {
                    "target": target_id,
                    "calls": due.calls,
                    "faults": due.faults,
                    "skew": due.skew,
                    "fault": due.fault,
                },
            )
    except (DatabaseError, InterfaceError) as error:
        log.warning("health.not_written", target=target_id, fault=type(error).__name__)


def of(target_ids: Iterable[int]) -> dict[int, Health]:
    """The health of targets as of now; one query."""
    ids = list(target_ids)
    found = dict.fromkeys(ids, Health())
    with connection.cursor() as cursor:
        cursor.execute(_READ, [ids])
        found |= {pk: Health(*columns) for pk, *columns in cursor.fetchall()}
    return found


def fault_of(exchange: Exchange) -> str:
    """What went wrong, in a word; empty for any answer that a working server gives to us."""
    if isinstance(exchange, Answer):
        ill = exchange.status >= 500 or exchange.status in CREDENTIAL_REFUSED
        return f"HTTP {exchange.status}" if ill else ""
    return exchange.reason


def forget() -> None:
    """Drop what is not written yet."""
    with _lock:
        _unwritten.clear()


def _take(target_id: int, exchange: Exchange) -> _Unwritten | None:
    """What is to be written now, this call included; None: later."""
    fault, now = fault_of(exchange), time.monotonic()
    skew = exchange.date_skew_seconds if isinstance(exchange, Answer) else None
    with _lock:
        kept = _unwritten.setdefault(target_id, _Unwritten())
        kept.calls += 1
        kept.faults += bool(fault)
        kept.fault = fault or kept.fault
        kept.skew = kept.skew if skew is None else skew
        ill = bool(fault) or abs(kept.skew or 0.0) > TOLERATED_SKEW
        wait = TURN_EVERY if ill != kept.ill else WRITE_EVERY
        if now - kept.written < wait:
            return None
        _unwritten[target_id] = _Unwritten(skew=kept.skew, ill=ill, written=now)
        return kept
