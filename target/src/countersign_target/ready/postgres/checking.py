"""What the database says of a file's SQL before anybody asks for a plan: nothing is run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import psycopg
from psycopg import Connection, sql

from countersign_target.ready.postgres.config import Change, Covered, parameters

# Texts are sent without a type, as inputs are; the other kinds decide how SQL is understood.
SAMPLES: Final = {"integer": 1, "number": 1.5, "boolean": True}


def complaints(connection: Connection[Any], changes: tuple[Change, ...]) -> Iterator[str]:
    """Why a statement, table, column or right of the file is none here; `EXPLAIN` runs nothing."""
    for number, change in enumerate(changes, start=1):
        inputs = {name: SAMPLES.get(each.kind) for name, each in change.inputs.declared.items()}
        values = parameters(change, inputs, datetime.now(UTC))
        texts = {"covers": map(_rows, change.covers), "statements": map(_raw, change.statements)}
        for key, queries in texts.items():
            for place, query in enumerate(queries, start=1):
                if words := _refused(connection, query, values):
                    yield f"operations[{number}].{key}[{place}]: {words}"


def _rows(covered: Covered) -> sql.Composable:
    columns = map(sql.Identifier, (*covered.key, *covered.columns, *covered.quiet))
    table = sql.Identifier(*covered.schema_and_name)
    return sql.SQL("SELECT {} FROM {} WHERE (\n{}\n) FOR UPDATE").format(
        sql.SQL(", ").join(columns), table, _raw(covered.where)
    )


def _raw(text: str) -> sql.Composable:
    # The operator's words, with its parameters still in them.
    return sql.SQL(text)


def _refused(connection: Connection[Any], query: sql.Composable, values: dict[str, Any]) -> str:
    try:
        with connection.transaction(force_rollback=True):
            # Prepared: a second statement in the text is refused, and not run.
            connection.execute(sql.SQL("EXPLAIN {}").format(query), values, prepare=True)
    except psycopg.ProgrammingError as fault:
        return fault.diag.message_primary or type(fault).__name__
    except psycopg.DataError:
        pass  # the sample's fault: it is no date, no UUID
    return ""
