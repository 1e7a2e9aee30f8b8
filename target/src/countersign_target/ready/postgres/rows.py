"""Covered rows: read under a lock, as JSON; and what lies between two readings of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from psycopg import Connection, sql

from countersign_target.problems import Change as Moved
from countersign_target.problems import Problem
from countersign_target.ready.inputs import named
from countersign_target.ready.postgres.config import Covered

SAFE_INTEGER: Final = 2**53 - 1

type Values = dict[str, Any]
type Parameters = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One covered row: its name, every column of it, and which version of it was read."""

    covered: Covered
    values: Values = field(repr=False)
    version: str

    @property
    def name(self) -> str:
        """`account/77`; the parts of a longer key are joined by commas."""
        parts = (named(str(self.values[each])) for each in self.covered.key)
        return f"{self.covered.label}/{','.join(parts)}"

    @property
    def shown(self) -> Values:
        """The columns that people see and the fingerprint covers."""
        return {each: self.values[each] for each in self.covered.columns}


type Rows = dict[str, Row]


def read(connection: Connection[Any], covered: Covered, parameters: Parameters) -> Rows:
    """The rows of this table that the change covers, locked; 422 when there are too many."""
    limit = sql.SQL("(\n{}\n) ORDER BY {} LIMIT {}").format(
        # The operator's words, with its parameters still in them.
        sql.SQL(covered.where),
        sql.SQL(", ").join(map(sql.Identifier, covered.key)),
        sql.Literal(covered.most + 1),
    )
    rows = _fetched(connection, covered, limit, parameters)
    if len(rows) > covered.most:
        raise Problem(
            422,
            "covers-too-many-rows",
            f"This covers more than {covered.most} rows of {covered.table}.",
        )
    return rows


def read_again(
    connection: Connection[Any], before: Rows, covers: Sequence[Covered], parameters: Parameters
) -> Rows:
    """The same rows, wherever the change has taken them, and those that are covered since."""
    after: Rows = {}
    for covered in covers:
        after |= read(connection, covered, parameters)
    for name, row in before.items():
        if name not in after:
            after |= _by_key(connection, row)
    return after


def _by_key(connection: Connection[Any], row: Row) -> Rows:
    # The record has the table's own types: the key's index serves, and no text is compared.
    schema, table = row.covered.schema_and_name
    record = sql.SQL("jsonb_populate_record(NULL::{}, %(record)s::jsonb)").format(
        sql.Identifier(schema, table)
    )
    pairs = [
        sql.SQL("{}.{} = ({}).{}").format(
            sql.Identifier(table), sql.Identifier(each), record, sql.Identifier(each)
        )
        for each in row.covered.key
    ]
    values = {each: row.values[each] for each in row.covered.key}
    where = sql.SQL(" AND ").join(pairs)
    return _fetched(connection, row.covered, where, {"record": json.dumps(values)})


def _fetched(
    connection: Connection[Any], covered: Covered, where: sql.Composed, parameters: Parameters
) -> Rows:
    schema, table = covered.schema_and_name
    query = sql.SQL(
        "SELECT to_jsonb({name}.*)::text, {name}.xmin::text || {name}.ctid::text"
        " FROM {table} AS {name} WHERE {where} FOR UPDATE OF {name}"
    ).format(name=sql.Identifier(table), table=sql.Identifier(schema, table), where=where)
    found = connection.cursor(row_factory=_pair).execute(query, parameters).fetchall()
    rows = [Row(covered, _columns(covered, text), version) for text, version in found]
    return {row.name: row for row in rows}


def _pair(_cursor: Any) -> Any:
    return tuple


def _columns(covered: Covered, text: str) -> Values:
    values: Values = json.loads(text, parse_float=str, parse_int=_integer)
    for name in (*covered.key, *covered.columns):
        if name not in values:
            raise Problem(500, "no-such-column", f"{covered.table} has no column {name}.")
    return values


def _integer(digits: str) -> int | str:
    """A number that every reader of JSON reads alike; a larger one is text, digit by digit."""
    number = int(digits) if len(digits) < 18 else None
    return number if number is not None and abs(number) <= SAFE_INTEGER else digits


def state(rows: Rows) -> dict[str, Values]:
    """What the fingerprint covers: row names and their columns."""
    return {name: row.shown for name, row in sorted(rows.items())}


def actions(before: Rows, after: Rows) -> list[dict[str, Any]]:
    """One action per row and column that changed: {op, target, field, from, to}."""
    found = []
    for name in _names(before, after):
        was, will = _shown(before, name), _shown(after, name)
        op = "update" if was and will else "add" if will else "remove"
        found += [
            {
                "op": op,
                "target": name,
                "field": column,
                "from": was.get(column),
                "to": will.get(column),
            }
            for column in (will or was)
            if was.get(column) != will.get(column)
        ]
    return found


def moved(planned: Mapping[str, Values], current: Mapping[str, Values]) -> list[Moved]:
    """Row and column of everything that is not as it was planned from."""
    return [
        Moved(column, was.get(column), now.get(column), name)
        for name in _names(planned, current)
        for was, now in [(planned.get(name, {}), current.get(name, {}))]
        for column in (now or was)
        if was.get(column) != now.get(column) or not (was and now)
    ]


def _names(one: Iterable[str], other: Iterable[str]) -> list[str]:
    return sorted({*one, *other})


def _shown(rows: Rows, name: str) -> Values:
    return rows[name].shown if name in rows else {}


def touched(before: Rows, after: Rows) -> Rows:
    """The rows that were written to: those of another version, the new ones and the gone ones."""
    changed = {
        name: row
        for name, row in after.items()
        if name not in before or before[name].version != row.version
    }
    gone = {name: row for name, row in before.items() if name not in after}
    return changed | gone
