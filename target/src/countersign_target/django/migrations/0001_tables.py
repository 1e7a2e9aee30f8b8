"""The tables of plans and keys, as the kit makes them in this kind of database."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from countersign_target.django.stores import transaction_of
from countersign_target.sql import KEYS, PLANS


def create(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    transaction_of(editor.connection).prepare()


def drop(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    for table in (KEYS, PLANS):
        editor.execute(f"DROP TABLE {table}")


class Migration(migrations.Migration):
    operations = [migrations.RunPython(create, drop)]
