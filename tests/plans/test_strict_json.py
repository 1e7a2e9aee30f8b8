"""The strict edge takes what every reader understands alike, no more (A-18, BI-1…BI-18)."""

import json
import math
import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plans import errors
from plans.canonical import jcs
from plans.errors import Problem
from plans.strict_json import MAX_BYTES, SAFE_INTEGER, parse, parse_object, parse_text

REFUSED = [
    # BI-1, BI-2: two members of one name, also when one is written with an escape
    (b'{"amount":1,"amount":2}', errors.DuplicateMember, "/amount"),
    (rb'{"amount":1,"\u0061mount":2}', errors.DuplicateMember, "/amount"),
    (b'{"a":[{"x/y~":{"":1,"":2}}]}', errors.DuplicateMember, "/a/0/x~1y~0/"),
    # BI-3
    (b'{"a":NaN}', errors.MalformedJson, "/a"),
    (b'{"a":Infinity}', errors.MalformedJson, "/a"),
    (b'{"a":[1,-Infinity]}', errors.MalformedJson, "/a/1"),
    # BI-4
    (b'{"a":1e400}', errors.NumberOutOfRange, "/a"),
    (b'{"a":-1e400}', errors.NumberOutOfRange, "/a"),
    (b'{"a":1e-400}', errors.NumberOutOfRange, "/a"),
    (b'{"a":' + b"9" * 400 + b".5}", errors.NumberOutOfRange, "/a"),
    # BI-5, BI-6
    (b'{"a":9007199254740993}', errors.UnsafeInteger, "/a"),
    (b'{"a":9007199254740992}', errors.UnsafeInteger, "/a"),
    (b'{"a":-9007199254740992}', errors.UnsafeInteger, "/a"),
    (b'{"a":9007199254740993.0}', errors.UnsafeInteger, "/a"),
    (b'{"a":1e20}', errors.UnsafeInteger, "/a"),
    (b'{"a":[' + b"9" * 5_000 + b"]}", errors.UnsafeInteger, "/a/0"),
    # BI-7
    (rb'{"a":"\ud800"}', errors.InvalidUnicode, "/a"),
    (rb'{"a":"\udc00\ud800"}', errors.InvalidUnicode, "/a"),
    (rb'{"a":{"\uDFFF":1}}', errors.InvalidUnicode, "/a"),
    # BI-8
    (rb'{"a":"a\u0000b"}', errors.NulNotAllowed, "/a"),
    (rb'{"a":{"\u0000":1}}', errors.NulNotAllowed, "/a"),
    (b'{"a":"a\0b"}', errors.MalformedJson, None),
    # BI-9
    (b'{"a":"\xff"}', errors.InvalidUtf8, None),
    (b'{"a":"\xed\xa0\x80"}', errors.InvalidUtf8, None),
    (b'{"a":"\xc0\xaf"}', errors.InvalidUtf8, None),
    # BI-10
    (b'\xef\xbb\xbf{"a":1}', errors.MalformedJson, None),
    ('{"a":1}'.encode("utf-16"), errors.InvalidUtf8, None),
    ('{"a":1}'.encode("utf-16-le"), errors.MalformedJson, None),
    ('{"a":1}'.encode("utf-32-be"), errors.MalformedJson, None),
    # BI-11
    (b"", errors.MalformedJson, None),
    (b"   ", errors.MalformedJson, None),
    (b'{"a":1} x', errors.MalformedJson, None),
    (b'{"a":1}{"a":1}', errors.MalformedJson, None),
    (b'{"a":1,}', errors.MalformedJson, None),
    (b"{'a':1}", errors.MalformedJson, None),
    (b'{"a":01}', errors.MalformedJson, None),
    (b'{"a":+1}', errors.MalformedJson, None),
    (b'{"a":1_000}', errors.MalformedJson, None),
    ('{"a":٤}'.encode(), errors.MalformedJson, None),
    ('\u00a0{"a":1}'.encode(), errors.MalformedJson, None),
    (b'{"a":"tab\there"}', errors.MalformedJson, None),
    (b"null", errors.NotAnObject, ""),
    (b"[]", errors.NotAnObject, ""),
    (b'"x"', errors.NotAnObject, ""),
    # BI-12
    (b'{"a":' + b"[" * 32 + b"]" * 32 + b"}", errors.TooDeep, None),
    (b"[" * 1_000 + b"]" * 1_000, errors.TooDeep, None),
    (b'{"a":' * 40_000, errors.TooDeep, None),
    (b"[" * 100_000 + b"]" * 100_000, errors.TooDeep, None),
    (json.dumps({str(n): n for n in range(2_001)}).encode(), errors.TooManyMembers, ""),
    (json.dumps({"a": [0] * 2_000}).encode(), errors.TooManyMembers, ""),
    (b'{"a":"' + b"x" * 65_537 + b'"}', errors.StringTooLong, "/a"),
    (('{"a":"' + "é" * 32_769 + '"}').encode(), errors.StringTooLong, "/a"),
    (b'{"a":{"' + b"x" * 65_537 + b'":1}}', errors.StringTooLong, "/a"),
    # BI-13
    (b" " * MAX_BYTES + b"{}", errors.BodyTooLarge, None),
    # BI-18
    (b'{"a":-0}', errors.NegativeZero, "/a"),
    (b'{"a":-0.0}', errors.NegativeZero, "/a"),
    (b'{"a":-0e7}', errors.NegativeZero, "/a"),
]

TAKEN = [
    (b" \r\n\t{} ", {}),
    (b'{"a":0,"b":0.0,"c":1,"d":1.0}', {"a": 0, "b": 0.0, "c": 1, "d": 1.0}),
    (b'{"a":9007199254740991,"b":-9007199254740991}', {"a": SAFE_INTEGER, "b": -SAFE_INTEGER}),
    (b'{"a":1.7976931348623157e308,"b":5e-324}', {"a": 1.7976931348623157e308, "b": 5e-324}),
    (rb'{"a":"\ud83d\ude00","b":"\\u0000"}', {"a": "\U0001f600", "b": r"\u0000"}),
    ('{"é":"e\u0301 \u202e\u3164\ufeff"}'.encode(), {"é": "e\u0301 \u202e\u3164\ufeff"}),
    (rb'{"a":"[[[[\"{{{{\\"}', {"a": '[[[["{{{{\\'}),
    (b'{"a":"' + b"[" * 1_000 + b'"}', {"a": "[" * 1_000}),
    (b'{"":{"":[]},"a":null,"b":true,"c":false}', {"": {"": []}, "a": None, "b": True, "c": False}),
    (b'{"a":"' + b"x" * 65_536 + b'"}', {"a": "x" * 65_536}),
    (json.dumps({str(n): n for n in range(2_000)}).encode(), {str(n): n for n in range(2_000)}),
]

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-SAFE_INTEGER, SAFE_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False).filter(
        lambda x: not SAFE_INTEGER < abs(x) < 1e21 and math.copysign(1, x) * x >= 0 and x != 0
    )
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
            inner,
            max_size=5,
        )
    ),
    max_leaves=30,
)
FRAGMENTS = st.lists(
    st.sampled_from(
        [
            *[b"{", b"}", b"[", b"]", b",", b":", b'"', b'"a"', b"\\", rb"\ud800", rb"\u0000"],
            *[b"-0", b"1e999", b"9" * 20, b"9" * 4_400, b"NaN", b"null", b" ", b"\xff", b"\t"],
        ]
    ),
    max_size=40,
).map(b"".join)


@pytest.mark.parametrize(("raw", "problem", "pointer"), REFUSED)
def test_it_refuses_what_readers_disagree_about(
    raw: bytes, problem: type[Problem], pointer: str | None
) -> None:
    with pytest.raises(Problem) as refusal:
        parse_object(raw)
    assert type(refusal.value) is problem
    assert [error.pointer for error in refusal.value.errors] == (
        [] if pointer is None else [pointer]
    )


@pytest.mark.parametrize(("raw", "value"), TAKEN)
def test_it_takes_what_every_reader_understands_alike(raw: bytes, value: object) -> None:
    parsed = parse_object(raw)
    assert json.dumps(parsed) == json.dumps(value)


def test_integers_stay_integers_and_other_numbers_are_floats() -> None:
    parsed = parse(b"[48000,48000.0,4.8e4]")
    assert isinstance(parsed, list)
    assert [type(number) for number in parsed] == [int, float, float]


BROKEN = {
    b"": "Line 1, column 1: the text ends, and a value is expected.",
    b'{"a": 1,\n "b": "x y"\n "c": 2}': "Line 3, column 2: a comma or } is expected.",
    b'{"a": [{"[": 1},\n\t2 3]}': "Line 2, column 4: a comma or ] is expected.",
    b'{"a": [1, 2': "Line 1, column 12: the text ends, and a comma or ] is expected.",
    b'{"a": [1], "b": {}': "Line 1, column 19: the text ends, and a comma or } is expected.",
    b'{"a": [1}': "Line 1, column 9: a comma or ] is expected.",
    b'{"a": tok_very_secret}': "Line 1, column 7: a value is expected.",
    b"{'a': 1}": "Line 1, column 2: a name in double quotes is expected.",
    b'{"a": 1,': "Line 1, column 9: the text ends, and a name in double quotes is expected.",
    b'{"a" 1}': "Line 1, column 6: a colon is expected.",
    b'{"a": 1} tok_very_secret': "Line 1, column 10: nothing may follow the value.",
    b'{"a": "tok_very_secret': "Line 1, column 7: the string that begins here has no end.",
    b'{"a": "x\ty"}': "Line 1, column 9: a control character in a string must be escaped.",
    rb'{"a": "\x"}': "Line 1, column 8: JSON has no such escape.",
    rb'{"a": "\u12"}': "Line 1, column 9: four hexadecimal digits are expected after \\u.",
    '{"é": "\U0001f600",\r\n  oh}'.encode(): (
        "Line 2, column 3: a name in double quotes is expected."
    ),
    '{"é": "'.encode() + b"\xff": "Line 1, column 8: the byte at offset 8 is not valid UTF-8.",
    b'\xef\xbb\xbf{"a":1}': "Line 1, column 1: no byte order mark may stand before the text.",
    b'{"[": [\n' + b"[" * 31 + b"]" * 31 + b"]}": (
        "Line 2, column 31: objects and arrays go deeper than 32 levels here."
    ),
}


@pytest.mark.parametrize("raw", BROKEN)
def test_a_broken_text_is_told_its_place_and_the_rule(raw: bytes) -> None:
    with pytest.raises(Problem) as refusal:
        parse_object(raw)
    assert (refusal.value.status, refusal.value.detail) == (400, BROKEN[raw])


@pytest.mark.parametrize("text", ['{"a": 1,}', "[1,\n]"])
def test_a_comma_too_much_is_told(text: str) -> None:
    """Python 3.12 points behind it, and says what it misses there."""
    with pytest.raises(errors.MalformedJson) as refusal:
        parse(text.encode())
    rule = (
        r"no comma may stand before the closing [}\]]|a (name in double quotes|value) is expected"
    )
    assert re.fullmatch(rf"Line [12], column [1-9]: ({rule})\.", refusal.value.detail)


def test_thirty_two_levels_are_not_too_deep() -> None:
    assert parse(b"[" * 32 + b"]" * 32) is not None


def test_a_target_may_have_other_limits() -> None:
    raw = b'"' + b"x" * 100_000 + b'"'
    assert parse(raw, max_string=100_000) == "x" * 100_000
    with pytest.raises(errors.TooDeep):
        parse(b"[[1]]", max_depth=1)
    with pytest.raises(errors.BodyTooLarge):
        parse(raw, max_bytes=100_000)


def test_the_first_fault_of_the_text_is_the_one_that_is_told() -> None:
    with pytest.raises(errors.UnsafeInteger) as refusal:
        parse(rb'{"a":1e3,"b":9007199254740993,"c":"\ud800","a":1}')
    assert refusal.value.errors[0].pointer == "/b"


@pytest.mark.parametrize(
    "text",
    [raw.decode("utf-8", "surrogateescape") for raw, _, _ in REFUSED if len(raw) < MAX_BYTES],
)
def test_a_fault_inside_the_inputs_text_keeps_its_code_with_status_422(text: str) -> None:
    with pytest.raises(Problem) as refusal:
        parse_text(text, "/inputs")
    assert refusal.value.status == 422
    assert [error.pointer for error in refusal.value.errors] == ["/inputs"]


def test_a_fault_inside_the_inputs_text_tells_its_inner_place_in_words() -> None:
    with pytest.raises(errors.DuplicateMember) as refusal:
        parse_text('{"a":{"b":1,"b":2}}', "/inputs")
    assert "/a/b" in refusal.value.errors[0].detail
    assert errors.DuplicateMember.status == 400


def test_a_place_in_the_inputs_text_says_that_it_is_in_there() -> None:
    with pytest.raises(errors.MalformedJson) as refusal:
        parse_text('{\n"a":}', "/inputs")
    told = "Line 2, column 5: a value is expected. (in the text at /inputs)"
    assert [refusal.value.detail, refusal.value.errors[0].detail] == [told, told]


def test_the_inputs_text_must_be_an_object() -> None:
    assert parse_text('{"amount_cents":48000}', "/inputs") == {"amount_cents": 48000}
    with pytest.raises(errors.NotAnObject):
        parse_text("[1]", "/inputs")


@pytest.mark.parametrize(
    "raw",
    [
        b'{"plan_token":"tok_very_secret_text',
        b'{"plan_token":"tok_very_secret_text","plan_token":"tok_very_secret_text"}',
        b'{"plan_token":"tok_very_secret_text","n":NaN}',
        b'{"plan_token":"tok_very_secret_text\xff"}',
    ],
)
def test_a_refusal_carries_no_piece_of_the_text(raw: bytes) -> None:
    with pytest.raises(Problem) as refusal:
        parse(raw)
    assert refusal.value.__cause__ is None
    assert refusal.value.__context__ is None
    assert "tok_very" not in repr(refusal.value) + str(refusal.value) + repr(refusal.value.errors)


@given(JSON)
def test_a_canonical_text_reads_back_as_the_same_value(value: object) -> None:
    assert parse(jcs(value)) == value  # type: ignore[arg-type]


@given(JSON)
def test_both_ways_of_escaping_read_as_the_same_value(value: object) -> None:
    plain = json.dumps(value, ensure_ascii=False).encode()
    assert parse(json.dumps(value).encode()) == parse(plain) == value


@given(st.binary(max_size=200) | FRAGMENTS)
def test_any_bytes_are_read_or_refused_and_never_more(raw: bytes) -> None:
    with suppress(Problem):
        value = parse(raw)
        assert parse(jcs(value)) == value
