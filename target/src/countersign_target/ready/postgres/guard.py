"""Runs the statements of a change, and refuses whatever nobody could see in the plan.

PostgreSQL itself counts the rows that a transaction writes in every table, triggers and cascades
included. What was written must be the covered rows and nothing else, and what changed in them must
be in the columns that the plan shows.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from psycopg import Connection

from countersign_target.problems import Problem
from countersign_target.ready.postgres.config import Change, Covered
from countersign_target.ready.postgres.rows import (
    Parameters,
    Rows,
    actions,
    read_again,
    touched,
)

WRITTEN: Final = """
    SELECT namespace.nspname || '.' || class.relname,
           sum(counted.n_tup_ins + counted.n_tup_upd + counted.n_tup_del)
    FROM pg_stat_xact_user_tables AS counted
    JOIN pg_class AS class ON class.oid = coalesce(pg_partition_root(counted.relid), counted.relid)
    JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
    GROUP BY 1
    HAVING sum(counted.n_tup_ins + counted.n_tup_upd + counted.n_tup_del) > 0
"""
MOST_ACTIONS: Final = 20

type Action = dict[str, Any]


def carry_out(
    connection: Connection[Any], change: Change, before: Rows, parameters: Parameters
) -> list[Action]:
    """Run every statement in the caller's transaction; what it changed, as actions.

    Problems are raised when it wrote more than the covered rows, or changed what is not shown.
    """
    counted = _written(connection)
    for statement in change.statements:
        # Through the extended protocol even without parameters: one statement, not several.
        connection.execute(statement.encode(), parameters, binary=True)
    # What waits for the COMMIT to complain must complain where it can still be told.
    connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
    written = _written(connection)
    written.subtract(counted)
    after = read_again(connection, before, change.covers, parameters)
    _refuse_more_than_covered(change, written, touched(before, after))
    _refuse_unseen(change, before, after)
    return _limited(actions(before, after))


def _written(connection: Connection[Any]) -> Counter[str]:
    cursor = connection.cursor(row_factory=lambda _: tuple)
    return Counter({name: int(count) for name, count in cursor.execute(WRITTEN).fetchall()})


def _refuse_more_than_covered(change: Change, written: Counter[str], rows: Rows) -> None:
    own = Counter(row.covered.table for row in rows.values())
    for table in dict.fromkeys([*own, *written]):
        beyond = written[table] - own[table]
        # Fewer would mean that the database does not count (track_counts): then nothing is known.
        if not 0 <= beyond <= change.also.get(table, 0):
            raise Problem(
                422,
                "touches-more-than-covered",
                f"This would write {written[table]} rows of {table}; {own[table]} are covered.",
            )


def _refuse_unseen(change: Change, before: Rows, after: Rows) -> None:
    for name, row in after.items():
        # A new row's columns count as set from nothing.
        was, shown = before[name].values if name in before else {}, _known(row.covered)
        hidden = [
            each
            for each, value in row.values.items()
            if each not in shown and was.get(each) != value
        ]
        if hidden:
            raise Problem(
                422,
                "changes-what-is-not-shown",
                f"{name}: {', '.join(hidden)} would change and is no column of the plan.",
            )


def _known(covered: Covered) -> set[str]:
    """Columns that the plan shows, that name the row, or that the operator calls quiet."""
    return {*covered.columns, *covered.key, *covered.quiet}


def _limited(found: list[Action]) -> list[Action]:
    if len(found) > MOST_ACTIONS:
        raise Problem(
            422,
            "too-many-changes",
            f"This would change {len(found)} values; a plan that people can read has"
            f" at most {MOST_ACTIONS}.",
        )
    return found
