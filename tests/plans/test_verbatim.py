"""Texts kept as they were written."""

from __future__ import annotations

import json

import pytest

from plans.verbatim import member, without


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('{"a":1.50,"t":"x","b":1e2}', '{"a":1.50,"b":1e2}'),
        (' {\n "t" : {"t":[1,2,{"u":"}"}]} ,\t"a" : "\\u0041,}" } ', '{"a":"\\u0041,}"}'),
        ('{"t":"x"}', "{}"),
        ('{"\\u0074":1,"z":null,"n":{"t":0.10}}', '{"z":null,"n":{"t":0.10}}'),
        ("{}", "{}"),
    ],
)
def test_one_member_goes_and_the_others_stay_as_written(text: str, kept: str) -> None:
    assert without(text, "t") == kept
    rest = {name: value for name, value in json.loads(text).items() if name != "t"}
    assert json.loads(kept) == rest


def test_a_member_is_found_as_written() -> None:
    assert member('{"x":[0.0, 1] , "plan" :  {"a": 1.0} }', "plan") == '{"a": 1.0}'
    with pytest.raises(KeyError):
        member("{}", "plan")
