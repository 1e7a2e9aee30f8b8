"""The statuses of a plan, each with its one meaning (2-contract, "Statuses of a plan")."""

from __future__ import annotations

from typing import Final

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop


class Status(TextChoices):
    VERIFYING = "verifying", _("verifying")
    PENDING = "pending", _("pending")
    APPROVED = "approved", _("approved")
    COMMITTING = "committing", _("committing")
    UNKNOWN = "unknown", _("unknown")
    UNRESOLVED = "unresolved", _("unresolved")
    COMMITTED = "committed", _("committed")
    REJECTED = "rejected", _("rejected")
    ABANDONED = "abandoned", _("abandoned")
    SUPERSEDED = "superseded", _("superseded")
    MISMATCHED = "mismatched", _("mismatched")
    FAILED = "failed", _("failed")
    EXPIRED = "expired", _("expired")
    CONFLICTED = "conflicted", _("conflicted")
    STALE = "stale", _("stale")
    CHANGES_REQUESTED = "changes_requested", _("changes requested")


MEANING: Final[dict[Status, str]] = {
    Status.VERIFYING: gettext_noop("received; being read back from the target"),
    Status.PENDING: gettext_noop("waits for people"),
    Status.APPROVED: gettext_noop("enough approvals; commit due now"),
    Status.COMMITTING: gettext_noop("an attempt exists; its outcome is not known yet"),
    Status.UNKNOWN: gettext_noop("an attempt ended without a trustworthy answer; being resolved"),
    Status.UNRESOLVED: gettext_noop(
        "automatic resolution is over; a person must look at the target"
    ),
    Status.COMMITTED: gettext_noop("applied, result stored"),
    Status.REJECTED: gettext_noop("closed by a person, nothing applied"),
    Status.ABANDONED: gettext_noop(
        "closed by the agent or the lifespan of its intent, nothing applied"
    ),
    Status.SUPERSEDED: gettext_noop("closed by its successor, nothing applied"),
    Status.MISMATCHED: gettext_noop("closed: the target's read-back differs from the submission"),
    Status.FAILED: gettext_noop("closed: the target definitely refused, nothing applied"),
    Status.EXPIRED: gettext_noop("closed by the clock, nothing applied; a re-plan is queued"),
    Status.CONFLICTED: gettext_noop(
        "closed: the world moved, nothing applied; a re-plan is queued"
    ),
    Status.STALE: gettext_noop(
        "closed: covered state was written, nothing applied; a re-plan is queued"
    ),
    Status.CHANGES_REQUESTED: gettext_noop(
        "closed by a reviewer's wish; a re-plan by the agent is queued"
    ),
}

# Closed, nothing applied, and a re-plan row is made in the same transaction.
REPLANNED: Final = frozenset(
    {Status.EXPIRED, Status.CONFLICTED, Status.STALE, Status.CHANGES_REQUESTED}
)
TERMINAL: Final = REPLANNED | {
    Status.COMMITTED,
    Status.REJECTED,
    Status.ABANDONED,
    Status.SUPERSEDED,
    Status.MISMATCHED,
    Status.FAILED,
}
# Statuses in which an attempt may be out; whether one is, the attempts say (S-4).
ENGAGED: Final = frozenset({Status.COMMITTING, Status.UNKNOWN, Status.UNRESOLVED})
# "Open" by status alone: not terminal and no attempt possible (S-4).
OPEN: Final = frozenset({Status.VERIFYING, Status.PENDING, Status.APPROVED})
