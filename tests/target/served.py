"""A shop behind a real server, in a process of its own.

    python -m tests.target.served alone|flask|fastapi|django STORE

STORE: a PostgreSQL address, or a path for SQLite. Prints its address first.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from typing import Any

from countersign_target import SqliteStore
from countersign_target.postgresql import PostgresStore
from countersign_target.serving import Handler, serve
from tests.target.shop import TABLES, Shop


def shop_in(address: str) -> Shop:
    """Its tables are made here."""
    if address.startswith("postgresql:"):
        return _with_tables(Shop(PostgresStore(address), "%s"))
    return _with_tables(Shop(SqliteStore(address), "?"))


def _with_tables(shop: Shop) -> Shop:
    with shop.store.transaction() as transaction:
        for statement in TABLES:
            shop.run(transaction.connection, statement)
    return shop


def alone(shop: Shop) -> None:
    class Dying(Handler):
        """Dies between the commit and the answer, where the plan says so."""

        def write(self, answer: Any) -> None:
            if shop.dies == "after the commit":
                os.kill(os.getpid(), signal.SIGKILL)
            super().write(answer)

    serve(shop.target(), port=0, handler=Dying)


def flask(shop: Shop) -> None:
    from flask import Flask
    from werkzeug.serving import make_server

    from countersign_target.flask import blueprint

    app = Flask("shop")
    app.register_blueprint(blueprint(shop.target()), url_prefix="/kit")
    server = make_server("127.0.0.1", 0, app, threaded=True)
    print(f"flask listens on http://127.0.0.1:{server.server_port}/kit", flush=True)
    server.serve_forever()


def fastapi(shop: Shop) -> None:
    import uvicorn
    from fastapi import FastAPI

    from countersign_target.starlette import router

    app = FastAPI()
    app.mount("/kit", router(shop.target()))
    _uvicorn(uvicorn, app)


def django(address: str) -> None:
    import uvicorn
    from django.core.asgi import get_asgi_application

    from tests.target.django_process import configure

    configure(address)
    _uvicorn(uvicorn, get_asgi_application(), lifespan="off")


def _uvicorn(uvicorn: Any, app: Any, **options: Any) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"uvicorn listens on http://127.0.0.1:{listener.getsockname()[1]}/kit", flush=True)
    config = uvicorn.Config(app, log_level="warning", access_log=False, **options)
    uvicorn.Server(config).run([listener])


def main(kind: str, address: str) -> None:
    if kind == "django":
        django(address)
    else:
        {"alone": alone, "flask": flask, "fastapi": fastapi}[kind](shop_in(address))


if __name__ == "__main__":
    main(*sys.argv[1:])
