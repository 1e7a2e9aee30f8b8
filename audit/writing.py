"""Rows of the hot path, written by statements that are composed once (see `audit.statements`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import Field, Model
from django.db.models.expressions import DatabaseDefault

type Fields = tuple[Field[Any, Any], ...]


@dataclass(frozen=True, slots=True)
class FilledIn:
    """In a `Change`: what the database fills in under this name of the new row."""

    name: str


@dataclass(frozen=True, slots=True)
class Change:
    """New `columns` (by attribute) for the row of this key, while it has the values of `guard`."""

    model: type[Model]
    pk: int
    guard: Mapping[str, Any]
    columns: Mapping[str, Any]


def insert[M: Model](row: M) -> M:
    """Store a new row as `save()` would, with what the database fills in; sends no signals."""
    ours, values = _given(row)
    sql, filled_in = _insertion(type(row), ours)
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(sql, values)
        returned = cursor.fetchone() if filled_in else ()
    return _stored(row, filled_in, returned)


def insert_and_change[M: Model](row: M, change: Change) -> M:
    """Store a new row, as `insert()` does, and change another one, by one statement.

    Raises RuntimeError when the guard does not hold: the caller's transaction must end by it.
    """
    ours, values = _given(row)
    fields = _fields(change.model)
    columns = {fields[name]: value for name, value in change.columns.items()}
    theirs = tuple(
        (field, value.name if isinstance(value, FilledIn) else None)
        for field, value in columns.items()
    )
    guard = {fields[name]: value for name, value in change.guard.items()}
    sql, filled_in = _insertion_and_change(type(row), ours, change.model, theirs, tuple(guard))
    sent = {field: value for field, value in columns.items() if not isinstance(value, FilledIn)}
    values += [*_prepared(sent), change.pk, *_prepared(guard)]
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(sql, values)
        returned = cursor.fetchone()
    if returned is None:
        raise RuntimeError(f"a {change.model._meta.verbose_name} is not as its guard says")
    return _stored(row, filled_in, returned)


@cache
def _fields(model: type[Model]) -> dict[str, Field[Any, Any]]:
    return {field.attname: field for field in model._meta.concrete_fields}


def _given(row: Model) -> tuple[Fields, list[Any]]:
    """The fields that we fill in, and their values for the database."""
    given = {field: field.pre_save(row, True) for field in row._meta.concrete_fields}
    ours = {field: value for field, value in given.items() if not _is_databases(field, value)}
    return tuple(ours), _prepared(ours)


def _is_databases(field: Field[Any, Any], value: Any) -> bool:
    """Whether the database makes this value: a default of its own, or the next key."""
    return isinstance(value, DatabaseDefault) or (field.primary_key and value is None)


def _prepared(values: Mapping[Field[Any, Any], Any]) -> list[Any]:
    connection = connections[DEFAULT_DB_ALIAS]
    return [field.get_db_prep_save(value, connection) for field, value in values.items()]


def _stored[M: Model](row: M, filled_in: list[str], returned: tuple[Any, ...]) -> M:
    for name, value in zip(filled_in, returned, strict=True):
        setattr(row, name, value)
    row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS
    return row


@cache
def _insertion(model: type[Model], ours: Fields) -> tuple[str, list[str]]:
    """The SQL, and the attributes that it returns."""
    columns = ", ".join(f'"{field.column}"' for field in ours)
    places = ", ".join(["%s"] * len(ours))
    theirs = [field for field in model._meta.concrete_fields if field not in ours]
    returning = ", ".join(f'"{field.column}"' for field in theirs)
    sql = f'INSERT INTO "{model._meta.db_table}" ({columns}) VALUES ({places})'
    return sql + (f" RETURNING {returning}" if theirs else ""), [f.attname for f in theirs]


@cache
def _insertion_and_change(
    model: type[Model],
    ours: Fields,
    changed: type[Model],
    columns: tuple[tuple[Field[Any, Any], str | None], ...],
    guard: Fields,
) -> tuple[str, list[str]]:
    """The same for both rows; a column is sent, or named after what the new row returns."""
    insertion, filled_in = _insertion(model, ours)
    table = changed._meta.db_table
    new = {field.attname: f'new."{field.column}"' for field in model._meta.concrete_fields}
    to = ", ".join(f'"{field.column}" = {new[name] if name else "%s"}' for field, name in columns)
    key = changed._meta.pk
    holds = " AND ".join(f'"{table}"."{field.column}" = %s' for field in (key, *guard))
    returning = ", ".join(new[name] for name in filled_in)
    change = f'UPDATE "{table}" SET {to} FROM new WHERE {holds} RETURNING {returning}'
    return f"WITH new AS ({insertion}) {change}", filled_in
