"""A transaction that waited for another one's lock comes after it in the trail (A-14)."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.models.functions import Cast, Greatest

from audit.models import CompletedXid, CurrentXid

XID = Cast(CurrentXid(), models.BigIntegerField())


class Migration(migrations.Migration):
    dependencies: ClassVar[list[tuple[str, str]]] = [("audit", "0003_seals")]
    operations: ClassVar[list[migrations.AlterField]] = [
        migrations.AlterField(
            model_name="event",
            name="xid",
            field=models.BigIntegerField(db_default=Greatest(XID, CompletedXid())),
        )
    ]
