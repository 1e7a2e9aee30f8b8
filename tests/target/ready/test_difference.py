"""What lies between two states of a JSON document, field by field."""

from __future__ import annotations

from typing import Any

import pytest

from countersign_target.ready.etag import difference as d


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        # RFC 7396, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_a_merge_patch_does_what_the_rfc_says(document: Any, patch: Any, result: Any) -> None:
    assert d.merged(document, patch) == result


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({}, {}, []),
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, [("update", "a", 1, True)]),
        ({"a": None}, {}, []),
        ({"a": {}}, {}, [("remove", "a", {}, None)]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3, "c": 2}}, [("update", "a/b", 1, 3)]),
        ({"a": {"b": 1}}, {"a": 7}, [("add", "a", None, 7), ("remove", "a/b", 1, None)]),
        ({"a": [1, 2]}, {"a": [2, 1]}, [("update", "a", [1, 2], [2, 1])]),
        ({"a/b": 1, "m~n": 1}, {"a/b": 2}, [("update", "a~1b", 1, 2), ("remove", "m~0n", 1, None)]),
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": 2, "x": 1}}, []),
    ],
)
def test_every_field_that_differs_is_an_action(
    before: dict[str, Any], after: dict[str, Any], found: list[tuple[Any, ...]]
) -> None:
    actions = d.actions("thing/1", before, after)
    assert [(a["op"], a["field"], a["from"], a["to"]) for a in actions] == found
    assert {a["target"] for a in actions} <= {"thing/1"}


def test_fields_that_say_nothing_are_named_only_when_nothing_else_moved() -> None:
    planned = {"name": "Ada", "meta": {"at": 1, "by": "x"}}
    both = {"name": "Eve", "meta": {"at": 2, "by": "x"}}
    only = {"name": "Ada", "meta": {"at": 2, "by": "x"}}
    assert [each["path"] for each in d.moved("t", planned, both, ["meta"])] == ["name"]
    assert [each["path"] for each in d.moved("t", planned, only, ["meta"])] == ["meta/at"]


def test_patches_join_and_keep_what_removes() -> None:
    one, other = {"a": {"b": None}, "c": 1}, {"a": {"d": 2}}
    assert d.joined_patches(one, other) == {"a": {"b": None, "d": 2}, "c": 1}
    assert d.patch_of({"a/b": None, "a/d": 2}) == {"a": {"b": None, "d": 2}}
    assert d.without({"id": 1, "a": {"b": 1, "c": 2}}, ["id", "a/c", "x/y"]) == {"a": {"b": 1}}
