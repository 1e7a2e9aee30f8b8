"""Seals, the place of an era, and triggers that refuse to change either."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models

import audit.models

# Managed servers may not tell the one or the other; the database's own number always is there.
PLACE = """
CREATE FUNCTION audit_place() RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    cluster text;
BEGIN
    BEGIN
        SELECT system_identifier || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
            INTO cluster FROM pg_control_system();
    EXCEPTION
        WHEN insufficient_privilege OR feature_not_supported OR undefined_function
            OR object_not_in_prerequisite_state THEN cluster := 'unknown';
    END;
    RETURN cluster || '/' || (SELECT oid FROM pg_database WHERE datname = current_database());
END $$;
"""
REFUSE = """
CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table}
    FOR EACH ROW EXECUTE FUNCTION audit_refuse_change();
CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse_change();
"""
ALLOW = """
DROP TRIGGER {table}_no_truncate ON {table};
DROP TRIGGER {table}_append_only ON {table};
"""


class Migration(migrations.Migration):
    dependencies: ClassVar[list[tuple[str, str]]] = [("audit", "0002_append_only")]
    operations: ClassVar[list[migrations.operations.base.Operation]] = [
        migrations.RunSQL(PLACE, "DROP FUNCTION audit_place();"),
        migrations.AddField(
            "era", "place", models.TextField(db_default=audit.models.CurrentPlace())
        ),
        migrations.CreateModel(
            name="Seal",
            fields=[
                ("number", models.BigIntegerField(primary_key=True, serialize=False)),
                ("era", models.PositiveIntegerField()),
                ("first_xid", models.BigIntegerField()),
                ("first_id", models.BigIntegerField()),
                ("last_xid", models.BigIntegerField()),
                ("last_id", models.BigIntegerField()),
                ("count", models.PositiveIntegerField()),
                ("total", models.BigIntegerField()),
                ("root", models.CharField(max_length=64)),
                ("previous", models.CharField(max_length=64, unique=True)),
                ("key_id", models.CharField(max_length=16)),
                ("at", models.DateTimeField()),
                ("hash", models.CharField(max_length=64, unique=True)),
                ("signature", models.CharField(max_length=128)),
                ("manifest", models.BinaryField()),
            ],
        ),
        *(
            migrations.RunSQL(REFUSE.format(table=table), ALLOW.format(table=table))
            for table in ("audit_seal", "audit_era")
        ),
    ]
