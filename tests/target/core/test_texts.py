"""What is read and written: JSON that every reader agrees on."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from countersign_target import Problem
from countersign_target.canonical import fingerprint, plain, same
from countersign_target.strict_json import parse_object
from tests.target.core.owner import Owner
from tests.target.crib import AGENT, Crib, code


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b'{"a":1,"a":2}', 400),
        (b'{"a":1,"\\u0061":2}', 400),
        (b'{"a":NaN}', 400),
        (b'{"a":1}x', 400),
        (b"\xef\xbb\xbf{}", 400),
        (b'{"a":"\xff"}', 400),
        (b"[" * 30_000, 400),
        (b'{"a":' + b"[" * 32 + b"]" * 32 + b"}", 400),
        (b"[]", 422),
        (b'{"a":"\\u0000"}', 422),
        (b'{"\\ud800":1}', 422),
        (b'{"a":9007199254740992}', 422),
        (b'{"a":1e999}', 422),
        (b'{"a":1e17}', 422),
        (b'{"a":' + b"9" * 5000 + b"}", 422),
    ],
)
def test_what_two_readers_may_differ_on_is_refused(raw: bytes, status: int) -> None:
    with pytest.raises(Problem) as refused:
        parse_object(raw)
    assert refused.value.status == status


def test_what_all_readers_agree_on_is_read() -> None:
    text = b'{"a":[1,-0.5,1e3,true,null,"\\ud83d\\ude00"],"":{}}'
    assert parse_object(text) == {"a": [1, -0.5, 1000.0, True, None, "😀"], "": {}}


def test_a_fingerprint_does_not_depend_on_the_order() -> None:
    one = fingerprint("refund", {"a": 1, "b": 2.0}, {"x": {"y": 1}})
    assert one == fingerprint("refund", {"b": 2, "a": 1}, {"x": {"y": 1}})
    assert one != fingerprint("other", {"a": 1, "b": 2}, {"x": {"y": 1}})


def test_values_of_databases_become_json() -> None:
    values = {"at": datetime(2026, 1, 31, 9, 31, 12, 40_999, UTC), "on": date(2026, 1, 31)}
    assert plain(values) == {"at": "2026-01-31T09:31:12.040Z", "on": "2026-01-31"}
    assert plain((Decimal("1.50"), None)) == ["1.50", None]
    assert not same(True, 1)
    with pytest.raises(TypeError, match="no form in JSON"):
        plain({1, 2})


def test_a_schema_points_at_what_it_refuses(crib: Crib, owner: Owner) -> None:
    schema = {"properties": {"a/b": {"type": "integer"}}, "additionalProperties": False}
    strict = Crib(crib.store, crib.mark, owner.operation(schema=schema))
    answer = strict.dry_run(**{"a/b": "x"})
    assert code(answer) == (422, "invalid-request")
    assert json.loads(answer.text)["errors"][0]["pointer"] == "/a~1b"
    dated = owner.operation(schema={"properties": {"day": {"type": "string", "format": "date"}}})
    answer = Crib(crib.store, crib.mark, dated).dry_run(day="banana")
    assert json.loads(answer.text)["errors"][0]["pointer"] == "/day"
    assert strict.ask("POST", "/change/dry_run", {}, authorization=f"Bearer {AGENT}").status == 200
