"""Verbs that a request calls run again when PostgreSQL breaks a deadlock (FM-34)."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Final

import structlog
from django.db import OperationalError, connection

log = structlog.get_logger(__name__)

RETRIES: Final = 3
# serialization_failure, deadlock_detected: the whole transaction was undone and may run again.
AGAIN: Final = frozenset({"40001", "40P01"})


def retried[**P, R](verb: Callable[P, R]) -> Callable[P, R]:
    """Run the verb again, at most three times, when its transaction lost to another one.

    The verb opens its own transaction. Inside a caller's transaction nothing can be run again.
    """

    @wraps(verb)
    def again(*args: P.args, **kwargs: P.kwargs) -> R:
        for tried in range(RETRIES):
            try:
                return verb(*args, **kwargs)
            except OperationalError as fault:
                if connection.in_atomic_block or sqlstate(fault) not in AGAIN:
                    raise
                log.info("verb.retried", verb=verb.__name__, tried=tried + 1, why=sqlstate(fault))
        return verb(*args, **kwargs)

    return again


def sqlstate(fault: BaseException) -> str:
    """PostgreSQL's five characters for what went wrong; empty when it said nothing."""
    return str(getattr(fault.__cause__, "sqlstate", None) or "")
