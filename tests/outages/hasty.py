"""A worker whose broker loses patience with a task after a second, and says what it was given."""

from __future__ import annotations

import sys
from typing import Any

from celery import signals

from config.celery import WORKER, app

HASTE = {"visibility_timeout": 1, "unacked_restore_interval": 1, "unacked_restore_throttle": 0}
app.conf.broker_transport_options = WORKER | HASTE


@signals.task_prerun.connect
def say(args: Any, **_kwargs: Any) -> None:
    """One line for each copy of a task that begins."""
    print(f"begins {list(args)}", file=sys.stderr, flush=True)
