"""Statements of the hot path, composed once: Django would compose the same SQL anew at every call.

For a plan with everything it names that takes several times as long as PostgreSQL needs to answer.
This lies at the bottom, beside the clock, because every layer reads rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import dataclass
from typing import Any, Final, cast

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import Expression, Field, Model, QuerySet
from django.db.models.query import get_related_populators
from django.db.transaction import TransactionManagementError


class Slot(Expression):
    """Where a value goes that is known only when the statement runs."""

    def __init__(self, name: str, output_field: Field[Any, Any]) -> None:
        super().__init__(output_field=output_field)
        self.name = name

    def as_sql(self, compiler: Any, connection: Any, **_: Any) -> Any:
        return "%s", (self,)


@dataclass(frozen=True, slots=True)
class _Composed:
    """What Django finds out about a query before it runs it."""

    sql: str
    params: tuple[Any, ...]
    compiler: Any
    converters: dict[int, Any]
    start: int
    attributes: list[str]
    populators: list[Any]
    annotations: dict[str, int]
    fetch_mode: Any
    locks: bool


class Statement[M: Model]:
    """A queryset of model instances, with a `Slot` for every value that changes.

    `build` makes the queryset, at the first run. `select_related`, `defer`, `annotate` and
    `select_for_update` work as ever; `prefetch_related` and slices that change do not.
    `spelled_out` is for statements that only partial indexes make cheap, `planned_anew` for those
    whose values tell PostgreSQL which way is the cheap one: it keeps no plan for them.
    """

    def __init__(
        self,
        build: Callable[[], QuerySet[M]],
        *,
        spelled_out: bool = False,
        planned_anew: bool = False,
    ) -> None:
        self._build = build
        self._spelled_out = spelled_out
        self._planned_anew = planned_anew
        self._composed: _Composed | None = None

    def all(self, **values: Any) -> list[M]:
        """The rows for these values of the slots, by name."""
        made = self._composed or self._compose()
        connection = connections[DEFAULT_DB_ALIAS]
        if made.locks and connection.get_autocommit():
            raise TransactionManagementError("a row lock needs a transaction")
        params = [values[p.name] if isinstance(p, Slot) else p for p in made.params]
        kept = _keeps_no_plan(connection) if self._planned_anew else nullcontext()
        with connection.cursor() as cursor, kept:
            cursor.execute(made.sql, params)
            found = cursor.fetchall()
        compiler = copy(made.compiler)
        compiler.connection = connection
        rows = compiler.apply_converters(found, made.converters) if made.converters else found
        return [self._instance(made, row) for row in rows]

    def first(self, **values: Any) -> M | None:
        """The first row, which needs no order where there can be but one."""
        found = self.all(**values)
        return found[0] if found else None

    def get(self, **values: Any) -> M:
        """The one row. Raises the model's DoesNotExist."""
        found = self.first(**values)
        if found is None:
            model: Any = self._build().model
            raise model.DoesNotExist(f"There is no such {model._meta.verbose_name}.")
        return found

    def _instance(self, made: _Composed, row: Any) -> M:
        end = made.start + len(made.attributes)
        model = made.compiler.klass_info["model"]
        values = row[made.start : end]
        found = model.from_db(DEFAULT_DB_ALIAS, made.attributes, values, fetch_mode=made.fetch_mode)
        for populator in made.populators:
            populator.populate(row, found)
        for name, position in made.annotations.items():
            setattr(found, name, row[position])
        return cast("M", found)

    def _compose(self) -> _Composed:
        """Two threads may both do it: the second one's result replaces an equal one."""
        queryset = self._build()
        compiler: Any = queryset.query.get_compiler(DEFAULT_DB_ALIAS)
        sql, params = compiler.as_sql()
        if self._spelled_out:
            sql, params = spelled_out(sql, params)
        fetch_mode = cast("Any", queryset)._fetch_mode
        fields = compiler.klass_info["select_fields"]
        start, end = fields[0], fields[-1] + 1
        made = _Composed(
            sql=sql,
            params=tuple(params),
            compiler=compiler,
            converters=compiler.get_converters([c[0] for c in compiler.select]),
            start=start,
            attributes=[column[0].target.attname for column in compiler.select[start:end]],
            populators=get_related_populators(
                compiler.klass_info, compiler.select, DEFAULT_DB_ALIAS, fetch_mode
            ),
            annotations=dict(compiler.annotation_col_map or {}),
            fetch_mode=fetch_mode,
            locks=queryset.query.select_for_update,
        )
        self._composed = made
        return made


class Keys:
    """The first columns of several querysets, found by one statement that is composed once.

    `build` makes the querysets, at the first run; each names a key and holds no `Slot`: what
    changes is the database's own, as its clock is.
    """

    def __init__(self, build: Callable[[], Sequence[QuerySet[Any, Any]]]) -> None:
        self._build = build
        self._composed: tuple[str, tuple[Any, ...], list[Field[Any, Any]]] | None = None

    def all(self) -> list[list[Any]]:
        """What each queryset finds, in the order of `build`."""
        made = self._composed = self._composed or self._compose()
        sql, params, fields = made
        with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
            cursor.execute(sql, params)
            rows = cursor.fetchall()
        found: list[list[Any]] = [[] for _ in fields]
        for number, _, key in sorted(rows):
            found[number].append(fields[number].to_python(key))
        return found

    def _compose(self) -> tuple[str, tuple[Any, ...], list[Field[Any, Any]]]:
        parts, params = list[str](), list[Any]()
        fields: list[Field[Any, Any]] = []
        for number, queryset in enumerate(self._build()):
            sql, given = queryset.query.get_compiler(DEFAULT_DB_ALIAS).as_sql()
            sql, given = spelled_out(sql, given)
            key = "row_number() OVER (), found.key::text"
            parts.append(f"SELECT {number}, {key} FROM ({sql}) AS found (key)")
            params += given
            fields.append(cast("Any", queryset.query).select[0].target)
        return " UNION ALL ".join(parts), tuple(params), fields


@contextmanager
def _keeps_no_plan(connection: Any) -> Iterator[None]:
    """The connection is this thread's alone, and open: its cursor is."""
    driver = connection.connection
    usual, driver.prepare_threshold = driver.prepare_threshold, None
    try:
        yield
    finally:
        driver.prepare_threshold = usual


def spelled_out(sql: str, params: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """Plain words and whole numbers written into the SQL instead of sent beside it.

    PostgreSQL then knows at once which partial indexes answer, and keeps its plan for all calls.
    """
    rest, kept = iter(params), list[Any]()

    def place(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%%"
        value = next(rest)
        if isinstance(value, str) and _WORD.fullmatch(value):
            return f"'{value}'"
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        kept.append(value)
        return "%s"

    return _PLACE.sub(place, sql), tuple(kept)


_PLACE: Final = re.compile("%s|%%")
_WORD: Final = re.compile("[a-z_]*")
