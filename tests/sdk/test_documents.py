"""What was answered, in a person's hands: it looks like JSON, and is not changed by accident."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from countersign_agent.documents import frozen
from countersign_agent.views import Outcome

TOLD = {"refund_id": "rf_1", "lines": [{"cents": 1500}, None], "notes": []}


def test_a_result_prints_as_the_json_that_the_target_sent() -> None:
    outcome = Outcome("committed", "done", result=frozen(TOLD))
    assert f"{outcome.result}" == str(TOLD)
    assert f"result={TOLD}" in repr(outcome)
    assert json.loads(json.dumps(outcome.result)) == TOLD


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))]
)
def test_a_result_is_equal_to_what_was_sent(copied: Callable[[Any], Any]) -> None:
    result = frozen(TOLD)
    for one in (result, copied(result)):
        assert (one == TOLD, one == TOLD, one != TOLD) == (True, True, False)
        assert one["lines"] == tuple(TOLD["lines"])
        assert one["lines"] != [{"cents": 1501}, None]


@pytest.mark.parametrize(
    "change",
    [
        lambda result: result.__setitem__("refund_id", "rf_2"),
        lambda result: result.__delitem__("refund_id"),
        lambda result: result.__ior__({"more": 1}),
        lambda result: result.pop("refund_id"),
        lambda result: result.popitem(),
        lambda result: result.setdefault("more", 1),
        lambda result: result.clear(),
        lambda result: result["lines"][0].update(cents=1),
        lambda result: result["lines"].append(1),
    ],
)
def test_a_result_cannot_be_changed(change: Callable[[Any], object]) -> None:
    result = frozen(TOLD)
    with pytest.raises((TypeError, AttributeError)):
        change(result)
    assert result == TOLD
    mine = dict(result)
    mine["refund_id"] = "rf_2"
    assert result == TOLD
