"""How the pool of database connections notices a server that went away."""

from __future__ import annotations

import select
from typing import Any, Final

import psycopg
from django.db import connections
from psycopg_pool import ConnectionPool

# A server that was restarted is found again within this, however long it was away.
RECONNECT_SECONDS: Final = 5.0


def look(connection: psycopg.Connection[Any]) -> None:
    """Called for each connection that is handed out; raises psycopg's errors for a dead one.

    A server that goes closes its end, so an idle socket with something to read is suspicious, and
    every other one is taken as it is: a question to the server each time costs as much as a query.
    """
    # Not `select`: a thousand that wait have file numbers beyond what it can take.
    readable = select.poll()
    readable.register(connection.fileno(), select.POLLIN)
    if not readable.poll(0):
        return
    try:
        ConnectionPool.check_connection(connection)
    except psycopg.Error:
        # Its idle siblings died with it: one by one, each would make somebody wait longer.
        if pool := getattr(connections["default"], "pool", None):
            pool.check()
        raise
