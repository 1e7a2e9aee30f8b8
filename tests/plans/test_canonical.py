"""Canonical texts and hashes (RFC 8785, B-2)."""

import pytest

from plans.canonical import inputs_hash, jcs, jcs_equal, sha256_hex
from plans.strict_json import JsonValue, parse


@pytest.mark.parametrize(
    ("raw", "canonical"),
    [
        (b'{ "b" : 1 , "a" : 2 }', b'{"a":2,"b":1}'),
        (b"[1.0,1e2,0.000001,1e-7,1e21,4.50]", b"[1,100,0.000001,1e-7,1e+21,4.5]"),
        (
            rb'"\u20ac$\u000f\nA\u0027B\u0022\u005c\\\"\/"',
            '"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'.encode(),
        ),
        # Names sort by UTF-16 units: the emoji's D83D comes before U+FB33.
        (
            '{"\ufb33":1,"\U0001f600":2,"ö":3}'.encode(),
            '{"ö":3,"\U0001f600":2,"\ufb33":1}'.encode(),
        ),
        (b"[true,false,null,{},[]]", b"[true,false,null,{},[]]"),
    ],
)
def test_it_writes_the_text_of_rfc_8785(raw: bytes, canonical: bytes) -> None:
    assert jcs(parse(raw)) == canonical


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1, 1.0, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        (1, True, False),
        (0, False, False),
        ([1, True], [True, 1], False),
        (1, "1", False),
        (None, False, False),
        ("é", "e\u0301", False),  # BI-34: kept as sent
    ],
)
def test_it_compares_values_as_json_and_not_as_python(
    left: JsonValue, right: JsonValue, equal: bool
) -> None:
    assert jcs_equal(left, right) is equal


def test_the_hash_of_the_inputs_is_over_the_text_as_sent() -> None:
    assert inputs_hash(b'{"a":1}') == sha256_hex(b'{"a":1}')
    assert inputs_hash(b'{"a":1}') != inputs_hash(b'{"a": 1}')
    assert sha256_hex(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
