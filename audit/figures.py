"""Numbers and plain lines, composed once like `statements`, and several numbers in one round trip.

A page of people asks how many of this and that there are; composing each question anew takes
longer than answering it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import QuerySet

from audit.statements import Slot, spelled_out


class Lines:
    """A queryset of `values_list`, with a `Slot` for every value that changes."""

    def __init__(self, build: Callable[[], QuerySet[Any, Any]]) -> None:
        self._build = build
        self._composed: tuple[str, tuple[Any, ...], Any, Any] | None = None

    def all(self, **values: Any) -> list[tuple[Any, ...]]:
        """The rows for these values of the slots, by name, as tuples."""
        sql, params, made, converters = self._composed or self._compose()
        compiler = copy(made)
        compiler.connection = connections[DEFAULT_DB_ALIAS]
        found = _run(sql, params, values)
        rows = compiler.apply_converters(found, converters) if converters else found
        return [tuple(row) for row in rows]

    def _compose(self) -> tuple[str, tuple[Any, ...], Any, Any]:
        compiler: Any = self._build().query.get_compiler(DEFAULT_DB_ALIAS)
        sql, params = spelled_out(*compiler.as_sql())
        converters = compiler.get_converters([column[0] for column in compiler.select])
        self._composed = sql, params, compiler, converters
        return self._composed


class Counts:
    """How many rows each of several querysets has: one statement for all of them.

    A slice stops the count: nothing beyond it is looked at.
    """

    def __init__(self, build: Callable[[], Mapping[str, QuerySet[Any, Any]]]) -> None:
        self._build = build
        self._composed: tuple[str, tuple[Any, ...], tuple[str, ...]] | None = None

    def of(self, **values: Any) -> dict[str, int]:
        """Name of a queryset → its number of rows, for these values of the slots."""
        sql, params, names = self._composed or self._compose()
        return dict(zip(names, _run(sql, params, values)[0], strict=True))

    def _compose(self) -> tuple[str, tuple[Any, ...], tuple[str, ...]]:
        asked, params = [], list[Any]()
        built = self._build()
        for rows in built.values():
            sql, own = rows.values("pk").query.get_compiler(DEFAULT_DB_ALIAS).as_sql()
            asked.append(f"(SELECT count(*) FROM ({sql}) AS counted)")
            params += own
        self._composed = (*spelled_out(f"SELECT {', '.join(asked)}", params), tuple(built))
        return self._composed


def _run(sql: str, params: tuple[Any, ...], values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(sql, [values[p.name] if isinstance(p, Slot) else p for p in params])
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found
