"""Every event is one sentence in plain words, and no value in it deceives (4-screens, SEC-13)."""

from __future__ import annotations

from typing import Any

import pytest

from audit.actions import Action
from audit.models import Event
from audit.sentences import PHRASES, SENTENCES, TONES, VARIANTS, sentence, tone

REFUND = "Refund 280.00 USD on invoice/4412"


def event(action: str, details: Any = None, **columns: Any) -> Event:
    """An event that Ada caused on a plan; not stored."""
    return Event(
        action=action,
        details={} if details is None else details,
        **{
            "actor_kind": "person",
            "actor_id": "1",
            "actor_label": "ada",
            "agent": "support-agent",
            "target": "billing",
            "operation": "refund",
            "plan_id": "plan_b1d07",
            "task_id": "t-1",
            "title": REFUND,
        }
        | columns,
    )


CLOCK = {"actor_kind": "system", "actor_id": "clock", "actor_label": "the clock"}
AGENT = {"actor_kind": "agent", "actor_label": "support-agent"}
CHANGED = [{"path": "refunded_cents", "planned": 0, "current": 20000}]


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (
            event(Action.DECISION_RECORDED, {"verdict": "approve", "note": ""}),
            f"ada approved {REFUND} (plan_b1d07), revision 2",
        ),
        (
            event(Action.DECISION_RECORDED, {"verdict": "reject", "note": "Wrong invoice."}),
            f"ada rejected {REFUND} (plan_b1d07), revision 2: “Wrong invoice.”",
        ),
        (
            event(Action.DECISION_REFUSED, {"verdict": "approve", "code": "already-decided"}),
            f"ada tried to approve {REFUND} (plan_b1d07), revision 2; refused: already decided",
        ),
        (
            event(Action.PLAN_EXPIRED, **CLOCK),
            f"The clock expired {REFUND} (plan_b1d07), revision 2",
        ),
        (
            event(Action.PLAN_CONFLICTED, {"changed": CHANGED}),
            f"billing refused {REFUND} (plan_b1d07), revision 2: refunded_cents changed 0 → 20000",
        ),
        (
            event(Action.PLAN_CONFLICTED, {"changed": None}),
            f"billing refused {REFUND} (plan_b1d07), revision 2: it does not say what changed",
        ),
        (
            event(
                Action.ATTEMPT_CLOSED,
                {"number": 1, "outcome": "conflicted", "http_status": 409, "elapsed_ms": 38.2},
            ),
            f"Attempt 1 for {REFUND} (plan_b1d07), revision 2: billing answered 409"
            " after 38 ms; conflicted",
        ),
        (
            event(Action.ATTEMPT_CLOSED, {"number": 1, "outcome": "applied", "reason": "applied"}),
            f"Attempt 1 for {REFUND} (plan_b1d07), revision 2:"
            " no answer from billing that says more; applied",
        ),
        (
            event(Action.ATTEMPT_CLOSED, {"number": 2, "outcome": "not_sent", "reason": "dns"}),
            f"Attempt 2 for {REFUND} (plan_b1d07), revision 2 never left: dns",
        ),
        (
            event(Action.PLAN_SUBMITTED, {"expires_at": "soon"}, title="", **AGENT),
            "support-agent submitted a refund at billing (plan_b1d07), revision 2;"
            " it expires at soon",
        ),
        (
            event(Action.CONFIG_APPLIED, {"kind": "person", "name": "bo", "changed": []}),
            "ada changed person bo: nothing more is known",
        ),
        (
            event(
                Action.CONFIG_APPLIED,
                {
                    "kind": "target",
                    "name": "billing",
                    "changed": [
                        {"key": "internal", "from": False, "to": True},
                        {"key": "credential", "words": "replaced"},
                    ],
                },
            ),
            "ada changed target billing: internal false → true, credential replaced",
        ),
        (event("plan.teleported", actor_label="bo"), f"bo: plan teleported {REFUND} (plan_b1d07)"),
    ],
)
def test_it_says_what_happened(told: Event, words: str) -> None:
    assert str(sentence(told, 2)).removesuffix(", revision 2") == words.removesuffix(", revision 2")


def test_a_first_revision_is_not_counted() -> None:
    told = event(Action.DECISION_RECORDED, {"verdict": "approve"})
    assert str(sentence(told, 1)) == str(sentence(told)) == f"ada approved {REFUND} (plan_b1d07)"


def test_every_action_has_a_sentence_of_known_phrases() -> None:
    assert set(SENTENCES) == set(Action)
    assert {action for action, _, _ in VARIANTS} | set(TONES) <= set(Action)
    for action in Action:
        assert str(sentence(event(action))).strip()
        assert tone(event(action)) in {"", "good", "warn", "bad", "info"}


@pytest.mark.parametrize(
    "details",
    [
        None,
        [],
        "text",
        {"changed": "x", "differences": 3, "elapsed_ms": "long", "problem": [1]},
        {"changed": [1, {}, {"path": None}], "differences": [{}], "problem": {}},
        {key: {"deep": [1]} for key in PHRASES},
    ],
)
def test_it_survives_details_of_any_shape(details: Any) -> None:
    for action in [*Action, "unknown.word", "odd{action}", ""]:
        told = event(action)
        told.details = details
        assert str(sentence(told))


HOSTILE = "a\u202eb\u3164\n\u2066"


def test_no_value_reorders_or_hides_a_sentence() -> None:
    columns = dict.fromkeys(
        ("actor_label", "agent", "target", "operation", "plan_id", "task_id", "title"), HOSTILE
    )
    member = {"path": HOSTILE, "planned": HOSTILE, "current": [HOSTILE], "key": HOSTILE}
    details: dict[str, Any] = dict.fromkeys(PHRASES, HOSTILE)
    details |= {"changed": [member], "note": HOSTILE, "reason": HOSTILE, "problem": member}
    for action in [*Action, "unknown.word"]:
        words = str(sentence(event(action, details, **columns), 2))
        assert words.isprintable()
        assert "\u3164" not in words


def test_a_long_value_is_cut_in_the_sentence() -> None:
    told = event(Action.DECISION_RECORDED, {"verdict": "reject", "note": "x" * 5000})
    assert len(str(sentence(told))) < 300
