"""Comments on a plan. Like the trail they are added and read, never changed."""

from typing import ClassVar

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import audit.models

REFUSE = """
CREATE FUNCTION approvals_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'comments are append-only: % refused', TG_OP
        USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER approvals_comment_append_only BEFORE UPDATE OR DELETE ON approvals_comment
    FOR EACH ROW EXECUTE FUNCTION approvals_refuse_change();
"""
ALLOW = """
DROP TRIGGER approvals_comment_append_only ON approvals_comment;
DROP FUNCTION approvals_refuse_change();
"""


class Migration(migrations.Migration):
    dependencies: ClassVar[list[object]] = [
        ("approvals", "0002_policies"),
        ("plans", "0007_opened"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations: ClassVar[list[object]] = [
        migrations.CreateModel(
            name="Comment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("text", models.TextField()),
                ("written_at", models.DateTimeField(db_default=audit.models.ClockTimestamp())),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="comments",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "plan",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="comments",
                        to="plans.plan",
                    ),
                ),
            ],
            options={"ordering": ["id"]},
        ),
        migrations.RunSQL(REFUSE, ALLOW),
    ]
