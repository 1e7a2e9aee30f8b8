"""One sentence per event, in plain words; what each word of the trail means to a reader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from string import Formatter
from typing import Any, Final

from audit import phrases
from audit.actions import Action as A
from audit.models import Event
from audit.phrases import Part, Phrase, Told

# A slot is filled by the phrase of its name; a phrase with nothing to say leaves no trace.
PHRASES: Final[dict[str, Phrase]] = {
    "actor": phrases.actor,
    "agent": phrases.agent,
    "target": phrases.target,
    "plan": phrases.plan,
    "intent": phrases.intent,
    "task": phrases.task,
    "note": phrases.note,
    "said": phrases.said,
    "because": phrases.because,
    "problem": phrases.problem,
    "answer": phrases.answer,
    "duration": phrases.duration,
    "number": phrases.detail("number", "?"),
    "key": phrases.detail("idempotency_key", "the stored key"),
    "expires_at": phrases.detail("expires_at", "an unknown time"),
    "replaced_by": phrases.detail("replaced_by", "a newer one"),
    "new_plan": phrases.detail("new_plan", "a new plan"),
    "label": phrases.detail("label", "something it read"),
    "kind": phrases.word("kind", "row"),
    "name": phrases.detail("name", "?"),
    "key_id": phrases.detail("key_id", "?"),
    "count": phrases.detail("plans", "0"),
    "tries": phrases.detail("tries", "?"),
    "after": phrases.detail("after", "several"),
    "outcome": phrases.word("outcome", "unknown"),
    "code": phrases.word("code", "not allowed"),
    "cause": phrases.word("cause", "unknown cause"),
    "alarm": phrases.detail("alarm", "something is wrong"),
    "first": phrases.detail("first", "something is wrong"),
    "sealed_at": phrases.detail("sealed_at", "its beginning"),
    "fault": phrases.detail("fault", "unknown fault"),
    "left": phrases.left,
    "state": phrases.word("kind", "nothing"),
    "changes": phrases.listed("changed", phrases.moved, "it does not say what changed"),
    "differences": phrases.listed("differences", phrases.differs, "the read-back is another"),
    "address": phrases.detail("address", "an address"),
    "message": phrases.detail("message", "a message"),
    "group": phrases.detail("group", "a group"),
    "asked_by": phrases.detail("asked_by", "another person"),
    "settings": phrases.listed("changed", phrases.configured, "nothing more is known"),
}

SENTENCES: Final[dict[str, str]] = {
    A.PLAN_SUBMITTED: "{actor} submitted {plan}; it expires at {expires_at}",
    A.PLAN_VERIFIED: "{target} confirmed {plan}; it waits for people",
    A.PLAN_UNVERIFIED: "{plan} waits for people as the agent's own description, not verified",
    A.PLAN_MISMATCHED: "{target} tells another {plan}: {differences}",
    A.PLAN_APPROVED: "{plan} has all its approvals; the commit is due",
    A.PLAN_REJECTED: "{plan} is closed, rejected by {actor}",
    A.PLAN_CHANGES_REQUESTED: "{plan} is closed, {actor} wants changes from the agent",
    A.PLAN_WITHDRAWN: "{actor} withdrew the approval of {plan}{note}",
    A.PLAN_REOPENED: "{plan} waits for people again{because}",
    A.PLAN_REASSESSED: "{plan} is shown anew{because}",
    A.PLAN_EXPIRED: "{actor} expired {plan}{because}",
    A.PLAN_STALE: "{plan} became stale{because}",
    A.PLAN_SUPERSEDED: "{plan} was replaced by {replaced_by}",
    A.PLAN_ABANDONED: "{actor} abandoned {plan}{because}{note}",
    A.PLAN_ABANDON_NOTED: "{actor} wants to abandon {plan}, maybe already sent{because}{note}",
    A.PLAN_COMMITTED: "{target} applied {plan}",
    A.PLAN_CONFLICTED: "{target} refused {plan}: {changes}",
    A.PLAN_FAILED: "{target} refused {plan}{problem}",
    A.PLAN_UNKNOWN: "Nobody knows yet whether {target} applied {plan}{because}",
    A.PLAN_UNRESOLVED: "{plan} is unresolved, a person must look at {target}{because}",
    A.PLAN_CHECKED_APPLIED: "{actor} looked at {target}: {plan} was applied{note}",
    A.PLAN_CHECKED_NOT_APPLIED: "{actor} looked at {target}: {plan} was not applied{note}",
    A.DECISION_RECORDED: "{actor} decided on {plan}{note}",
    A.DECISION_REFUSED: "{actor} tried to decide on {plan}; refused: {code}",
    A.DECISION_WITHDRAWN: "{actor} withdrew the approval of {plan}{note}; it still waits",
    A.ATTEMPT_STARTED: "Attempt {number} to commit {plan} began with key {key}",
    A.ATTEMPT_CLOSED: "Attempt {number} for {plan}: {answer}{duration}; {outcome}{because}",
    A.ATTEMPT_LATE_ANSWER: "Too late, attempt {number} for {plan}: {answer}; {outcome}{because}",
    A.STATE_READ: "{target} was asked about {plan} and says: {state}",
    A.INTENT_OPENED: "{actor} asked for {intent}{because}",
    A.INTENT_SETTLED: "Nothing is left to change in {intent}; it is settled",
    A.INTENT_PARKED: "After {after} re-plans that nobody saw, {intent} waits for a reviewer",
    A.INTENT_ABANDONED: "{actor} ended {intent}{because}{note}",
    A.INTENT_FAILED: "No plan can be made for {intent}{because}",
    A.REPLAN_QUEUED: "A fresh plan for {intent} was queued: {cause}",
    A.REPLAN_FAILED_TRY: "Try {tries} to plan {intent} again failed: {fault}",
    A.REPLAN_HANDED_TO_AGENT: "{agent} must plan {intent} again itself{because}",
    A.REPLAN_COMPLETED: "{new_plan} is the fresh plan for {intent}",
    A.REPLAN_CANCELLED: "The queued re-plan for {intent} was cancelled{because}",
    A.EVIDENCE_ADDED: "{actor} added evidence to {plan}: {label}",
    A.COMMENT_ADDED: "{actor} commented on {plan}{said}",
    A.TASK_WRITES_REPORTED: "{actor} reported writes in task {task}",
    A.TASK_ENDED: "{actor} ended task {task} with {count} plans",
    A.CIRCUIT_OPENED: "Nothing more is sent to {target}{because}",
    A.CIRCUIT_CLOSED: "{actor} lets commits go to {target} again{because}",
    A.CONTRACT_TEST_ASKED: "{actor} asked for a test of the contract of {target}",
    A.CONTRACT_TESTED: "The contract of {target} was tested: {outcome}",
    A.EMERGENCY_STOPPED: "{actor} stopped all sending{because}",
    A.EMERGENCY_RELEASE_ASKED: "{actor} asked to let commits be sent again{because}",
    A.EMERGENCY_RELEASED: "{actor} lets commits be sent again, as {asked_by} had asked{because}",
    A.EMERGENCY_GLASS_BROKEN: "{actor} released the emergency stop alone{because}",
    A.TARGET_ALARM: "{target} behaves against the rules with {plan}: {alarm}",
    A.CONFIG_APPLIED: "{actor} changed {kind} {name}: {settings}",
    A.API_KEY_CREATED: "{actor} made API key {key_id} for {agent}",
    A.API_KEY_REVOKED: "{actor} revoked API key {key_id} of {agent}",
    A.WEBHOOK_ADDED: "{actor} lets {agent}'s events be sent to {address}",
    A.WEBHOOK_ON: "{actor} switched {agent}'s webhook to {address} on",
    A.WEBHOOK_OFF: "{actor} switched {agent}'s webhook to {address} off{because}",
    A.WEBHOOK_SECRET_ROTATED: "{actor} made a new secret for {agent}'s webhook to {address}",
    A.WEBHOOK_SECRET_RETIRED: "The old secret of {agent}'s webhook to {address} signs no more",
    A.WEBHOOK_SENT_AGAIN: "{actor} had {message} sent again to {agent}'s webhook at {address}",
    A.NOTICES_OFF: "The notices of {group} to {address} are off{because}",
    A.SIGNED_IN: "{actor} signed in",
    A.SIGN_IN_FAILED: "Signing in as {actor} failed",
    A.AUDIT_ERA_BEGAN: "Era {number} of the trail began{because}",
    A.AUDIT_VERIFIED: "{actor} verified the trail: it does not hold; {first}",
}
# Where a member of the details makes another sentence of the same action.
VARIANTS: Final[dict[tuple[str, str, Any], str]] = {
    (A.DECISION_RECORDED, "verdict", "approve"): "{actor} approved {plan}{note}",
    (A.DECISION_RECORDED, "verdict", "reject"): "{actor} rejected {plan}{note}",
    (
        A.DECISION_RECORDED,
        "verdict",
        "request_changes",
    ): "{actor} requested changes to {plan}{note}",
    (A.DECISION_REFUSED, "verdict", "approve"): "{actor} tried to approve {plan}; refused: {code}",
    (A.DECISION_REFUSED, "verdict", "reject"): "{actor} tried to reject {plan}; refused: {code}",
    (A.DECISION_REFUSED, "verdict", "request_changes"): (
        "{actor} tried to request changes to {plan}; refused: {code}"
    ),
    (A.DECISION_REFUSED, "verdict", "withdraw"): (
        "{actor} tried to withdraw the approval of {plan}; refused: {code}"
    ),
    (A.PLAN_COMMITTED, "applied_out_of_band", True): (
        "{target} applied {plan}; somebody else had committed it"
    ),
    (A.PLAN_COMMITTED, "replayed", True): "{target} applied {plan}; the stored answer came back",
    (A.ATTEMPT_CLOSED, "outcome", "not_sent"): "Attempt {number} for {plan} never left{because}",
    (A.REPLAN_QUEUED, "opened", True): (
        "{actor} opened {intent}, which was parked; a fresh plan is asked for"
    ),
    (A.REPLAN_QUEUED, "cause", "first"): "The first plan for {intent} was queued",
    (A.REPLAN_QUEUED, "cause", "opened"): (
        "{actor} opened {intent} with {left} left; the app makes a fresh plan"
    ),
    (A.REPLAN_QUEUED, "cause", "person"): "{actor} asked for a fresh plan for {intent}",
    (A.WEBHOOK_OFF, "off", "gone"): (
        "{agent}'s webhook to {address} is off: the receiver says that it is gone"
    ),
    (A.WEBHOOK_OFF, "off", "exhausted"): (
        "{agent}'s webhook to {address} is off: {message} failed for three days"
    ),
    (A.NOTICES_OFF, "off", "gone"): (
        "The notices of {group} to {address} are off: the receiver says that it is gone"
    ),
    (A.NOTICES_OFF, "off", "exhausted"): (
        "The notices of {group} to {address} are off: one failed for three days"
    ),
    (A.CONFIG_APPLIED, "created", True): "{actor} made {kind} {name}: {settings}",
    (A.AUDIT_VERIFIED, "holds", True): "{actor} verified the trail up to {sealed_at}: it holds",
}
TONES: Final[dict[str, str]] = {
    **dict.fromkeys([A.PLAN_COMMITTED, A.PLAN_CHECKED_APPLIED, A.EMERGENCY_RELEASED], "good"),
    **dict.fromkeys(
        [
            A.PLAN_CONFLICTED,
            A.PLAN_EXPIRED,
            A.PLAN_STALE,
            A.PLAN_CHANGES_REQUESTED,
            A.PLAN_REOPENED,
            A.PLAN_UNKNOWN,
            A.INTENT_PARKED,
            A.REPLAN_FAILED_TRY,
            A.PLAN_UNVERIFIED,
            A.AUDIT_ERA_BEGAN,
            A.EMERGENCY_RELEASE_ASKED,
            A.WEBHOOK_OFF,
            A.NOTICES_OFF,
        ],
        "warn",
    ),
    **dict.fromkeys(
        [
            A.PLAN_MISMATCHED,
            A.PLAN_REJECTED,
            A.PLAN_FAILED,
            A.PLAN_UNRESOLVED,
            A.PLAN_CHECKED_NOT_APPLIED,
            A.DECISION_REFUSED,
            A.INTENT_FAILED,
            A.CIRCUIT_OPENED,
            A.TARGET_ALARM,
            A.EMERGENCY_STOPPED,
            A.EMERGENCY_GLASS_BROKEN,
            A.SIGN_IN_FAILED,
        ],
        "bad",
    ),
    **dict.fromkeys([A.DECISION_RECORDED, A.PLAN_APPROVED, A.ATTEMPT_STARTED], "info"),
}


@dataclass(frozen=True, slots=True)
class Sentence:
    """The parts in their order; `str()` is the plain text of the export."""

    parts: tuple[Part, ...]

    def __str__(self) -> str:
        return "".join(part.text for part in self.parts)


def sentence(event: Event, revision: int | None = None) -> Sentence:
    """What happened, in one sentence; a word that this version does not know is shown as it is."""
    told = Told(event, revision)
    return Sentence(tuple(_capitalised(_filled(_template(told), told))))


def tone(event: Event) -> str:
    """The colour of an event's mark, never its only sign: good, warn, bad, info or none."""
    return TONES.get(event.action, "")


def _template(told: Told) -> str:
    action = told.event.action
    for (named, key, value), template in VARIANTS.items():
        if named == action and told.detail(key) == value:
            return template
    return SENTENCES.get(action) or "{actor}: " + _literal(action) + " {plan}"


def _literal(action: str) -> str:
    return action.replace(".", " ").replace("_", " ").replace("{", "").replace("}", "")


def _filled(template: str, told: Told) -> Iterator[Part]:
    for text, slot, _, _ in Formatter().parse(template):
        if text:
            yield Part(text)
        if slot:
            yield from PHRASES[slot](told)


def _capitalised(parts: Iterable[Part]) -> Iterator[Part]:
    """Our own first word begins with a capital; a name is written as its bearer writes it."""
    for index, part in enumerate(parts):
        if index == 0 and not part.kind:
            yield Part(part.text[:1].upper() + part.text[1:])
        else:
            yield part
