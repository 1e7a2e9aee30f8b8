"""A process that tells and delivers what is due, and dies by SIGKILL at the step it is given.

    python -m tests.plans.dying_worker hook.claimed

Without a step it lives to the end.
"""

from __future__ import annotations

import os
import signal
import sys
from datetime import timedelta

import django


def main(step: str) -> None:
    django.setup()
    from django.conf import settings

    from audit import failpoints
    from plans import delivering, telling, webhooks

    def act(name: str, key: object) -> None:
        if name == step:
            os.kill(os.getpid(), signal.SIGKILL)

    settings.FAILPOINTS = True
    failpoints.install(act)
    webhooks.TOTAL_SECONDS = 1.0  # type: ignore[misc]
    delivering.LEASE_SLACK = timedelta(seconds=0.5)  # type: ignore[misc]
    delivering.SCHEDULE = (0, *[0.5] * 9)  # type: ignore[assignment, misc]
    telling.tell_all()
    for pk in webhooks.due():
        webhooks.deliver(pk)


if __name__ == "__main__":
    main(*sys.argv[1:] or [""])
