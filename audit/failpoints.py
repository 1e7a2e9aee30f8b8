"""Named steps at which the tests break things: raise, kill the process, wait.

In production every one is one look at a variable. No setting, no environment variable and no
request can switch them on: only the settings of the tests (tests/matrix/settings.py) say
`FAILPOINTS = True`, and what then acts is code of the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

type Act = Callable[[str, object], None]
"""(name, key) → what happens there; it may raise."""

# "inside": written, and not yet committed, with the row lock held.
STEPS: Final[Mapping[str, str]] = {
    "claim.before": "a commit is due, and nothing is claimed",
    "claim.inside": "the attempt's row is written and not committed",
    "claim.after": "the attempt is committed, and no socket is open",
    "send.before": "connected, and no byte is sent",
    "send.after": "the request is sent, and no answer is read",
    "answer.read": "the answer is in hand, and not judged",
    "result.before": "the answer is judged, and not written",
    "result.inside": "the outcome is written and not committed",
    "result.after": "the outcome is committed, and nobody is told",
    "read.claimed": "the plan's state is about to be read",
    "read.answered": "the plan's state is in hand, and not written",
    "read.inside": "what the reading proves is written and not committed",
    "decide.before": "the decision may stand, and nothing is written",
    "decide.recorded": "the decision is written, and the plan has not moved",
    "decide.inside": "the plan has moved, and nothing is committed",
    "decide.after": "the decision is committed, and no doorbell has rung",
    "replan.claimed": "a re-plan is leased, and no dry run is made",
    "replan.answered": "the dry run's answer is in hand",
    "replan.inside": "the new revision is about to be written, under the intent's lock",
    "replan.recorded": "the new revision is committed, and not read back",
    "hook.claimed": "a delivery's attempt is committed, and no socket is open",
    "hook.answered": "the receiver's answer is in hand, and not written",
    "hook.inside": "the delivery's outcome is written and not committed",
    "hook.told": "the deliveries of new events are written and not committed",
    "seal.before": "the rows are chosen, and no seal is written",
    "seal.inside": "the seal is written and not committed",
}

_act: Act | None = None


def failpoint(name: str, key: object = None) -> None:
    """Does nothing. `key` tells one passage from another: a plan's or an intent's ID."""
    if _act is not None:
        _act(name, key)


def install(act: Act) -> None:
    """Let `act` happen at every step of this process. ImproperlyConfigured outside the tests."""
    if getattr(settings, "FAILPOINTS", False) is not True:
        raise ImproperlyConfigured("Failpoints are for the settings of the tests alone.")
    global _act
    _act = act
