"""How far the trail was read by one of its readers."""

from __future__ import annotations

from django.db import models


class TrailMark(models.Model):
    """The last event that a reader of the trail has taken in: one row per reader, in feed order."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    era = models.PositiveIntegerField(default=0)
    xid = models.BigIntegerField(default=0)
    event_id = models.BigIntegerField(default=0)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"era {self.era}, {self.xid}, {self.event_id}"
