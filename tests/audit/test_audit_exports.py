"""Mona takes the trail with her: all of it, and nothing in it runs (BI-52)."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext

from audit import actors, exports
from audit.actions import Action
from audit.models import Event
from audit.recording import Subject, record

ADA = actors.Actor("person", "1", "ada")


@pytest.fixture
def reader(client: Client, mona: User) -> Client:
    client.force_login(mona)
    return client


def happen(title: str = "", note: str = "", **subject: Any) -> Event:
    about = {"target": "billing", "operation": "refund", "plan_id": "plan_b1d07"} | subject
    with transaction.atomic():
        details = {"verdict": "approve", "note": note}
        return record(Action.DECISION_RECORDED, ADA, Subject(title=title, **about), details)


def export(reader: Client, **query: str) -> str:
    response: Any = reader.get("/audit/export", query)
    assert response.status_code == 200
    assert response.streaming
    return b"".join(response.streaming_content).decode()


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.django_db
def test_csv_holds_every_column_oldest_first(reader: Client) -> None:
    first, second = happen("Refund 480.00 USD", "a “note”,\nwith lines"), happen(plan_id="plan_2")
    found = rows(export(reader, format="csv"))
    assert [row["id"] for row in found] == [str(first.pk), str(second.pk)]
    assert found[0]["sentence"].startswith("ada approved Refund 480.00 USD (plan_b1d07): “a “note”")
    assert json.loads(found[0]["details"])["note"] == "a “note”,\nwith lines"
    assert tuple(found[0]) == exports.COLUMNS
    assert found[0]["at"].endswith("Z")


@pytest.mark.django_db
@pytest.mark.parametrize("begins", [*"=+-@\t\r\n", "\uff1d", "\uff20", " =", "\u00a0+"])
def test_no_cell_is_a_formula(reader: Client, begins: str) -> None:
    formula = f"{begins}HYPERLINK(1)"
    happen(formula, formula, target=formula, operation=formula, plan_id=formula, task_id=formula)
    (row,) = rows(export(reader, format="csv"))
    for column in ("title", "target", "operation", "plan_id", "task_id"):
        assert row[column] == f"'{formula}"
    assert not any(cell.lstrip(" \u00a0").startswith(tuple("=+-@\t\r\n")) for cell in row.values())


@pytest.mark.django_db
def test_ordinary_values_are_not_touched(reader: Client) -> None:
    happen("Refund 1-2=3", task_id="a@b")
    (row,) = rows(export(reader, format="csv"))
    assert (row["title"], row["task_id"]) == ("Refund 1-2=3", "a@b")


@pytest.mark.django_db
def test_json_lines_keep_values_verbatim(reader: Client) -> None:
    happen("=1\u2028\u202e", "two\nlines")
    text = export(reader, format="jsonl")
    assert text.isascii()
    (line,) = text.splitlines()
    found = json.loads(line)
    assert found["title"] == "=1\u2028\u202e"
    assert found["details"]["note"] == "two\nlines"
    assert tuple(found) == exports.COLUMNS


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_it_is_a_file_that_nobody_caches(reader: Client, kind: str) -> None:
    response: Any = reader.get("/audit/export", {"format": kind})
    assert response["Content-Disposition"].startswith('attachment; filename="audit-')
    assert response["Content-Disposition"].endswith(f'.{kind}"')
    assert "no-store" in response["Cache-Control"]
    lines = b"".join(response.streaming_content).decode().splitlines()
    assert len(lines) == (1 if kind == "csv" else 0)


@pytest.mark.django_db
def test_an_unknown_format_is_refused_in_words(reader: Client) -> None:
    response = reader.get("/audit/export", {"format": "xlsx"})
    assert response.status_code == 422
    assert "“format” must be csv or jsonl" in response.content.decode()


@pytest.mark.django_db
def test_it_goes_batch_by_batch_and_stops_at_its_beginnings_end(
    reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "BATCH", 3)
    ids = [happen(plan_id=f"plan_{n}").pk for n in range(7)]
    response: Any = reader.get("/audit/export", {"format": "jsonl"})
    chunks = iter(response.streaming_content)
    first = next(chunks)
    happen(plan_id="plan_late")
    text = (first + b"".join(chunks)).decode()
    assert len(first.splitlines()) == 3
    assert [json.loads(line)["id"] for line in text.splitlines()] == ids


@pytest.mark.django_db
def test_a_batch_costs_two_queries(reader: Client) -> None:
    Event.objects.bulk_create(
        Event(action=Action.PLAN_EXPIRED, target="billing", plan_id=f"p{n}") for n in range(1000)
    )
    with CaptureQueriesContext(
        connection,
    ) as queries:
        export(reader, format="csv")
    own = [query for query in queries if "audit_event" in query["sql"]]
    assert len(own) == 3


@pytest.mark.django_db(transaction=True)
def test_under_asgi_it_streams_too(mona: User, async_client: AsyncClient) -> None:
    event = happen()

    async def read() -> list[bytes]:
        await async_client.aforce_login(mona)
        response: Any = await async_client.get("/audit/export", {"format": "jsonl"})
        assert response.is_async
        return [chunk async for chunk in response.streaming_content]

    (chunk,) = async_to_sync(read)()
    assert json.loads(chunk)["id"] == event.pk
