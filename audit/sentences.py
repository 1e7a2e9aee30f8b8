"""One sentence per event, in plain words; what each word of the trail means to a reader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from string import Formatter
from typing import Any, Final

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

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
    "key": phrases.detail("idempotency_key", _("the stored key")),
    "expires_at": phrases.detail("expires_at", _("an unknown time")),
    "replaced_by": phrases.detail("replaced_by", _("a newer one")),
    "new_plan": phrases.detail("new_plan", _("a new plan")),
    "label": phrases.detail("label", _("something it read")),
    "kind": phrases.word("kind", _("row")),
    "name": phrases.detail("name", "?"),
    "key_id": phrases.detail("key_id", "?"),
    "count": phrases.detail("plans", "0"),
    "tries": phrases.detail("tries", "?"),
    "after": phrases.detail("after", _("several")),
    "outcome": phrases.word("outcome", _("unknown")),
    "code": phrases.word("code", _("not allowed")),
    "cause": phrases.word("cause", _("unknown cause")),
    "alarm": phrases.detail("alarm", _("something is wrong")),
    "first": phrases.detail("first", _("something is wrong")),
    "sealed_at": phrases.detail("sealed_at", _("its beginning")),
    "fault": phrases.detail("fault", _("unknown fault")),
    "left": phrases.left,
    "state": phrases.word("kind", _("nothing")),
    "changes": phrases.listed("changed", phrases.moved, _("it does not say what changed")),
    "differences": phrases.listed("differences", phrases.differs, _("the read-back is another")),
    "address": phrases.detail("address", _("an address")),
    "message": phrases.detail("message", _("a message")),
    "group": phrases.detail("group", _("a group")),
    "asked_by": phrases.detail("asked_by", _("another person")),
    "settings": phrases.listed("changed", phrases.configured, _("nothing more is known")),
}

SENTENCES: Final[dict[str, str]] = {
    A.PLAN_SUBMITTED: _("{actor} submitted {plan}; it expires at {expires_at}"),
    A.PLAN_VERIFIED: _("{target} confirmed {plan}; it waits for people"),
    A.PLAN_UNVERIFIED: _("{plan} waits for people as the agent's own description, not verified"),
    A.PLAN_MISMATCHED: _("{target} tells another {plan}: {differences}"),
    A.PLAN_APPROVED: _("{plan} has all its approvals; the commit is due"),
    A.PLAN_REJECTED: _("{plan} is closed, rejected by {actor}"),
    A.PLAN_CHANGES_REQUESTED: _("{plan} is closed, {actor} wants changes from the agent"),
    A.PLAN_WITHDRAWN: _("{actor} withdrew the approval of {plan}{note}"),
    A.PLAN_REOPENED: _("{plan} waits for people again{because}"),
    A.PLAN_REASSESSED: _("{plan} is shown anew{because}"),
    A.PLAN_EXPIRED: _("{actor} expired {plan}{because}"),
    A.PLAN_STALE: _("{plan} became stale{because}"),
    A.PLAN_SUPERSEDED: _("{plan} was replaced by {replaced_by}"),
    A.PLAN_ABANDONED: _("{actor} abandoned {plan}{because}{note}"),
    A.PLAN_ABANDON_NOTED: _("{actor} wants to abandon {plan}, maybe already sent{because}{note}"),
    A.PLAN_COMMITTED: _("{target} applied {plan}"),
    A.PLAN_CONFLICTED: _("{target} refused {plan}: {changes}"),
    A.PLAN_FAILED: _("{target} refused {plan}{problem}"),
    A.PLAN_UNKNOWN: _("Nobody knows yet whether {target} applied {plan}{because}"),
    A.PLAN_UNRESOLVED: _("{plan} is unresolved, a person must look at {target}{because}"),
    A.PLAN_CHECKED_APPLIED: _("{actor} looked at {target}: {plan} was applied{note}"),
    A.PLAN_CHECKED_NOT_APPLIED: _("{actor} looked at {target}: {plan} was not applied{note}"),
    A.DECISION_RECORDED: _("{actor} decided on {plan}{note}"),
    A.DECISION_REFUSED: _("{actor} tried to decide on {plan}; refused: {code}"),
    A.DECISION_WITHDRAWN: _("{actor} withdrew the approval of {plan}{note}; it still waits"),
    A.ATTEMPT_STARTED: _("Attempt {number} to commit {plan} began with key {key}"),
    A.ATTEMPT_CLOSED: _("Attempt {number} for {plan}: {answer}{duration}; {outcome}{because}"),
    A.ATTEMPT_LATE_ANSWER: _("Too late, attempt {number} for {plan}: {answer}; {outcome}{because}"),
    A.STATE_READ: _("{target} was asked about {plan} and says: {state}"),
    A.INTENT_OPENED: _("{actor} asked for {intent}{because}"),
    A.INTENT_SETTLED: _("Nothing is left to change in {intent}; it is settled"),
    A.INTENT_PARKED: _("After {after} re-plans that nobody saw, {intent} waits for a reviewer"),
    A.INTENT_ABANDONED: _("{actor} ended {intent}{because}{note}"),
    A.INTENT_FAILED: _("No plan can be made for {intent}{because}"),
    A.REPLAN_QUEUED: _("A fresh plan for {intent} was queued: {cause}"),
    A.REPLAN_FAILED_TRY: _("Try {tries} to plan {intent} again failed: {fault}"),
    A.REPLAN_HANDED_TO_AGENT: _("{agent} must plan {intent} again itself{because}"),
    A.REPLAN_COMPLETED: _("{new_plan} is the fresh plan for {intent}"),
    A.REPLAN_CANCELLED: _("The queued re-plan for {intent} was cancelled{because}"),
    A.EVIDENCE_ADDED: _("{actor} added evidence to {plan}: {label}"),
    A.COMMENT_ADDED: _("{actor} commented on {plan}{said}"),
    A.TASK_WRITES_REPORTED: _("{actor} reported writes in task {task}"),
    A.TASK_ENDED: _("{actor} ended task {task} with {count} plans"),
    A.CIRCUIT_OPENED: _("Nothing more is sent to {target}{because}"),
    A.CIRCUIT_CLOSED: _("{actor} lets commits go to {target} again{because}"),
    A.CONTRACT_TEST_ASKED: _("{actor} asked for a test of the contract of {target}"),
    A.CONTRACT_TESTED: _("The contract of {target} was tested: {outcome}"),
    A.EMERGENCY_STOPPED: _("{actor} stopped all sending{because}"),
    A.EMERGENCY_RELEASE_ASKED: _("{actor} asked to let commits be sent again{because}"),
    A.EMERGENCY_RELEASED: _("{actor} lets commits be sent again, as {asked_by} had asked{because}"),
    A.EMERGENCY_GLASS_BROKEN: _("{actor} released the emergency stop alone{because}"),
    A.TARGET_ALARM: _("{target} behaves against the rules with {plan}: {alarm}"),
    A.CONFIG_APPLIED: _("{actor} changed {kind} {name}: {settings}"),
    A.API_KEY_CREATED: _("{actor} made API key {key_id} for {agent}"),
    A.API_KEY_REVOKED: _("{actor} revoked API key {key_id} of {agent}"),
    A.WEBHOOK_ADDED: _("{actor} lets {agent}'s events be sent to {address}"),
    A.WEBHOOK_ON: _("{actor} switched {agent}'s webhook to {address} on"),
    A.WEBHOOK_OFF: _("{actor} switched {agent}'s webhook to {address} off{because}"),
    A.WEBHOOK_SECRET_ROTATED: _("{actor} made a new secret for {agent}'s webhook to {address}"),
    A.WEBHOOK_SECRET_RETIRED: _("The old secret of {agent}'s webhook to {address} signs no more"),
    A.WEBHOOK_SENT_AGAIN: _("{actor} had {message} sent again to {agent}'s webhook at {address}"),
    A.NOTICES_OFF: _("The notices of {group} to {address} are off{because}"),
    A.SIGNED_IN: _("{actor} signed in"),
    A.SIGN_IN_FAILED: _("Signing in as {actor} failed"),
    A.AUDIT_ERA_BEGAN: _("Era {number} of the trail began{because}"),
    A.AUDIT_VERIFIED: _("{actor} verified the trail: it does not hold; {first}"),
}
# Where a member of the details makes another sentence of the same action.
VARIANTS: Final[dict[tuple[str, str, Any], str]] = {
    (A.DECISION_RECORDED, "verdict", "approve"): _("{actor} approved {plan}{note}"),
    (A.DECISION_RECORDED, "verdict", "reject"): _("{actor} rejected {plan}{note}"),
    (
        A.DECISION_RECORDED,
        "verdict",
        "request_changes",
    ): _("{actor} requested changes to {plan}{note}"),
    (A.DECISION_REFUSED, "verdict", "approve"): _(
        "{actor} tried to approve {plan}; refused: {code}"
    ),
    (A.DECISION_REFUSED, "verdict", "reject"): _("{actor} tried to reject {plan}; refused: {code}"),
    (A.DECISION_REFUSED, "verdict", "request_changes"): _(
        "{actor} tried to request changes to {plan}; refused: {code}"
    ),
    (A.DECISION_REFUSED, "verdict", "withdraw"): _(
        "{actor} tried to withdraw the approval of {plan}; refused: {code}"
    ),
    (A.PLAN_COMMITTED, "applied_out_of_band", True): _(
        "{target} applied {plan}; somebody else had committed it"
    ),
    (A.PLAN_COMMITTED, "replayed", True): _("{target} applied {plan}; the stored answer came back"),
    (A.ATTEMPT_CLOSED, "outcome", "not_sent"): _("Attempt {number} for {plan} never left{because}"),
    (A.REPLAN_QUEUED, "opened", True): _(
        "{actor} opened {intent}, which was parked; a fresh plan is asked for"
    ),
    (A.REPLAN_QUEUED, "cause", "first"): _("The first plan for {intent} was queued"),
    (A.REPLAN_QUEUED, "cause", "opened"): _(
        "{actor} opened {intent} with {left} left; the app makes a fresh plan"
    ),
    (A.REPLAN_QUEUED, "cause", "person"): _("{actor} asked for a fresh plan for {intent}"),
    (A.WEBHOOK_OFF, "off", "gone"): _(
        "{agent}'s webhook to {address} is off: the receiver says that it is gone"
    ),
    (A.WEBHOOK_OFF, "off", "exhausted"): _(
        "{agent}'s webhook to {address} is off: {message} failed for three days"
    ),
    (A.NOTICES_OFF, "off", "gone"): _(
        "The notices of {group} to {address} are off: the receiver says that it is gone"
    ),
    (A.NOTICES_OFF, "off", "exhausted"): _(
        "The notices of {group} to {address} are off: one failed for three days"
    ),
    (A.CONFIG_APPLIED, "created", True): _("{actor} made {kind} {name}: {settings}"),
    (A.AUDIT_VERIFIED, "holds", True): _("{actor} verified the trail up to {sealed_at}: it holds"),
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
    broken = event.details.get("holds") is False
    return "bad" if broken else TONES.get(event.action, "")


def _template(told: Told) -> str:
    action = told.event.action
    for (named, key, value), template in VARIANTS.items():
        if named == action and told.detail(key) == value:
            return gettext(template)
    known = SENTENCES.get(action)
    return gettext(known) if known else "{actor}: " + _literal(action) + " {plan}"


def _literal(action: str) -> str:
    return action.replace(".", " ").replace("_", " ").replace("{", "").replace("}", "")


def _filled(template: str, told: Told) -> Iterator[Part]:
    for text, slot, *_rest in Formatter().parse(template):
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
