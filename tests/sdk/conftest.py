"""Billing as the demo runs it, and a program of an agent that commits there by itself."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
from psycopg import conninfo, sql

from config import embedded
from tests.demo.billing_process import Target, running
from tests.sdk.overhearing import Ear
from tests.sdk.programs import Program


@pytest.fixture(scope="session")
def direct_billing() -> Iterator[Target]:
    """Its own process and its own database."""
    named = os.environ.get("DATABASE_URL") or embedded.Cluster().urls()["postgres"]
    server = conninfo.make_conninfo(named, dbname="postgres")
    name = f"test_countersign_sdk_{uuid4().hex[:12]}"
    with running(conninfo.make_conninfo(server, dbname=name)) as target:
        yield target
    with psycopg.connect(server, autocommit=True) as connection:
        drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
        connection.execute(drop.format(sql.Identifier(name)))


@pytest.fixture
def billing(direct_billing: Target) -> Iterator[Target]:
    """The running billing, with nothing armed."""
    yield direct_billing
    direct_billing.app.post("/_faults", json={"commit": "none"})


@pytest.fixture
def invoice(billing: Target) -> str:
    return billing.new_invoice(48_000)


@pytest.fixture
def ear() -> Iterator[Ear]:
    """Hears everything; at the end no token may have been in it."""
    ear = Ear()
    ear.listen()
    yield ear
    ear.stop()
    assert not ear.betrayed(), "a plan token was told"


@pytest.fixture(params=["threads", "event loop"])
def program(request: pytest.FixtureRequest, ear: Ear, billing: Target) -> Iterator[Program]:
    with asyncio.Runner() as runner:
        program = Program(request.param, ear, billing.url, runner)
        yield program
        for close in program.closing:
            close()
