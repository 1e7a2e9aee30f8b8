"""The file of a PostgreSQL target, as the process needs it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from countersign_target.ready.inputs import NAME, VISIBLE, Inputs, read_inputs
from countersign_target.ready.service import Service, read_service
from countersign_target.ready.settings import Table, read

PARAMETER: Final = re.compile(r"%\(([^)]*)\)s|%%|%")
IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_$]{0,62}", re.ASCII)
# What may begin a change. Nothing here ends a transaction or alters a table's shape.
VERBS: Final = ("INSERT", "UPDATE", "DELETE", "MERGE", "WITH")
# Beside the inputs: the moment of the dry run, the same again at the commit.
PLANNED_AT: Final = "planned_at"
MOST_ROWS: Final = 20


@dataclass(frozen=True, slots=True)
class Covered:
    """Rows of one table that the change depends on and may touch."""

    table: str
    label: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    quiet: tuple[str, ...]
    where: str
    most: int

    @property
    def schema_and_name(self) -> tuple[str, str]:
        """The table's schema (`public` where none is given) and name."""
        schema, _, name = self.table.rpartition(".")
        return schema or "public", name


@dataclass(frozen=True, slots=True)
class Change:
    """One operation: what it covers, what it runs, and which tables it may touch besides."""

    name: str
    inputs: Inputs
    covers: tuple[Covered, ...]
    statements: tuple[str, ...]
    also: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PostgresSettings:
    """The whole file. Milliseconds."""

    service: Service
    database_url: str = field(repr=False)
    schema: str
    statement_timeout: int
    lock_timeout: int
    pool_size: int
    changes: tuple[Change, ...]


def read_settings(path: Path) -> PostgresSettings:
    """Read the file; ConfigurationError names what is wrong with it."""
    file = read(path)
    service, database = read_service(file.table("server")), file.table("database")
    settings = PostgresSettings(
        service=service,
        database_url=database.secret("url"),
        schema=database.text("schema", "countersign_target"),
        statement_timeout=database.whole("statement_timeout_ms", 5_000, least=10, most=60_000),
        lock_timeout=database.whole("lock_timeout_ms", 2_000, least=10, most=60_000),
        pool_size=database.whole("pool_size", 8, least=1, most=200),
        changes=tuple(_change(table) for table in file.tables("operations")),
    )
    file.done()
    if not IDENTIFIER.fullmatch(settings.schema):
        raise database.wrong("schema", "must be a plain name")
    names = [change.name for change in settings.changes]
    if not names or len(set(names)) != len(names):
        raise file.wrong("operations", "must be there, each with a name of its own")
    return settings


def _change(table: Table) -> Change:
    name, inputs = table.text("name"), read_inputs(table.table("inputs"))
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,62}", name):
        raise table.wrong("name", "is lower-case letters, digits and _")
    if PLANNED_AT in inputs.declared:
        raise table.wrong("inputs", f"{PLANNED_AT} is the moment of the dry run, not an input")
    covers = tuple(_covered(each, inputs) for each in table.tables("covers"))
    if not covers or len({each.table for each in covers}) != len(covers):
        raise table.wrong("covers", "must be there, each table once")
    statements = table.texts("statements")
    if not statements:
        raise table.wrong("statements", "must have one statement at least")
    for statement in statements:
        if statement.split(None, 1)[0].upper() not in VERBS:
            raise table.wrong("statements", f"each must begin with one of {', '.join(VERBS)}")
        _check_parameters(table, "statements", statement, inputs)
    also = table.table("also", {})
    touched = {each: also.whole(each, least=1, most=10_000) for each in also.values}
    return Change(
        name, inputs, covers, statements, {_full(each): touched[each] for each in also.values}
    )


def _covered(table: Table, inputs: Inputs) -> Covered:
    covered = Covered(
        table=_full(table.text("table")),
        label=table.text("label", table.text("table").rpartition(".")[2]),
        key=table.texts("key"),
        columns=table.texts("columns"),
        quiet=table.texts("quiet", []),
        where=table.text("where"),
        most=table.whole("max_rows", 1, least=1, most=MOST_ROWS),
    )
    for name in (*covered.key, *covered.columns, *covered.table.split(".")):
        if not IDENTIFIER.fullmatch(name):
            raise table.wrong("columns", f"{name} is no plain name")
    if not VISIBLE.fullmatch(covered.label):
        raise table.wrong("label", "is visible ASCII without spaces")
    if not covered.key or set(covered.key) & set(covered.columns):
        raise table.wrong("key", "names the row, apart from the columns that are shown")
    _check_parameters(table, "where", covered.where, inputs)
    return covered


def _full(table: str) -> str:
    return table if "." in table else f"public.{table}"


def _check_parameters(table: Table, key: str, text: str, inputs: Inputs) -> None:
    """Values reach the database as parameters, never as text: every `%` must be one of ours."""
    for match in PARAMETER.finditer(text):
        if match[0] == "%":
            raise table.wrong(key, "write %(name)s for an input, and %% for a percent sign")
        name = match[1]
        if name is not None and not (NAME.fullmatch(name) and _known(name, inputs)):
            raise table.wrong(key, f"%({name})s is no input")


def _known(name: str, inputs: Inputs) -> bool:
    return name in inputs.declared or name == PLANNED_AT


def parameters(change: Change, inputs: Mapping[str, Any], planned_at: Any) -> dict[str, Any]:
    """Every name that SQL may use, with its value; an optional input that is not given: NULL."""
    return {name: inputs.get(name) for name in change.inputs.declared} | {PLANNED_AT: planned_at}
