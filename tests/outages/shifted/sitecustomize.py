"""Loaded by every Python that finds it on its path: this process lives so many seconds off."""

import os
from datetime import UTC, datetime, timedelta

import time_machine

_OFF = float(os.environ["SECONDS_OFF"])
time_machine.travel(datetime.now(UTC) + timedelta(seconds=_OFF), tick=True).start()
