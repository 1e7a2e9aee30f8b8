"""Log lines: one JSON object each, with what was said and nothing else."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What goes to stderr in production."""
    handler = logging.getHandlerByName("stderr")
    assert isinstance(handler, logging.StreamHandler)
    stream = io.StringIO()
    before = handler.setStream(stream)
    yield stream
    handler.setStream(before)


def said(lines: io.StringIO) -> dict[str, Any]:
    (line,) = lines.getvalue().splitlines()
    return dict(json.loads(line))


def test_a_line_holds_what_was_said_and_who_said_it(lines: io.StringIO) -> None:
    structlog.get_logger("plans.tasks").warning("doorbell.failed", pk=7)
    line = said(lines)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "doorbell.failed",
        "pk": 7,
        "logger": "plans.tasks",
        "level": "warning",
    }


def test_what_a_library_says_is_a_line_like_ours(lines: io.StringIO) -> None:
    logging.getLogger("celery.worker").warning("lost %s", "it", extra={"data": {"body": "x"}})
    line = said(lines)
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "lost it", "logger": "celery.worker", "level": "warning"}
