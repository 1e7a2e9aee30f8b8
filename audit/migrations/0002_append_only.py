"""The trail takes INSERT and nothing else; the era function feeds its column default."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

REFUSE = """
CREATE FUNCTION audit_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit trail is append-only: % refused', TG_OP
        USING ERRCODE = 'insufficient_privilege';
END $$;

CREATE TRIGGER audit_event_append_only BEFORE UPDATE OR DELETE ON audit_event
    FOR EACH ROW EXECUTE FUNCTION audit_refuse_change();
CREATE TRIGGER audit_event_no_truncate BEFORE TRUNCATE ON audit_event
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse_change();
"""

REVERSE = """
DROP TRIGGER audit_event_no_truncate ON audit_event;
DROP TRIGGER audit_event_append_only ON audit_event;
DROP FUNCTION audit_refuse_change();
"""


class Migration(migrations.Migration):
    dependencies: ClassVar[list[tuple[str, str]]] = [("audit", "0001_initial")]
    operations: ClassVar[list[migrations.RunSQL]] = [migrations.RunSQL(REFUSE, REVERSE)]
