"""The decision form: which fields there are, what they may hold, and what they must repeat."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.core import signing
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from approvals.ballots import Ballot
from approvals.digest import Shown, what_is_shown
from approvals.models import Decision
from approvals.titles import headline
from plans.canonical import jcs, sha256_hex
from plans.errors import ConfirmationMismatch, IdMismatch, InvalidField, UnknownField
from plans.models import Operation, Plan
from plans.problem import Problem
from plans.timestamps import parse_instant, rfc3339

_SALT: Final = "approvals.shown_at"
# A comment that was typed and not sent stands in the same form: it must not get lost.
_DECISION: Final = frozenset(
    {"verdict", "note", "shown_digest", "shown_at", "confirm", "opened", "comment"}
)
_WITHDRAWAL: Final = frozenset({"note"})
# Ours, and the two that may repeat what the address says (SEC-4, BI-42).
_ALWAYS: Final = frozenset({"csrfmiddlewaretoken", "target", "plan_id"})
_LONGEST_CONFIRMATION: Final = 60
# The parts of the digest, as a page names them.
PARTS: Final = {
    "target": gettext_lazy("the target"),
    "operation": gettext_lazy("the operation"),
    "plan_id": gettext_lazy("the plan"),
    "input_fingerprint": gettext_lazy("the fingerprint"),
    "inputs": gettext_lazy("the inputs"),
    "expires_at": gettext_lazy("the expiry"),
    "verified": gettext_lazy("the verification"),
    "title": gettext_lazy("the title"),
    "actions": gettext_lazy("what will change"),
    "risk": gettext_lazy("the risk"),
    "policy_version": gettext_lazy("the policy"),
    "approvals_required": gettext_lazy("the number of approvals"),
}

type Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ShownAt:
    """What a page remembers about itself: when it was shown, and a hash of each part."""

    at: str
    parts: dict[str, str]


def shown_at(plan: Plan, shown: Shown, now: datetime) -> str:
    """The signed hidden field. It tells a refused form what has changed since (B-2, B-11)."""
    return signing.dumps({"at": rfc3339(now), "parts": _parts(plan, shown)}, salt=_SALT)


def changed_since(token: str, plan: Plan, shown: Shown) -> list[str]:
    """The names of PARTS that are not as the page showed them; empty for a page of another time."""
    try:
        before = _read(token).parts
    except InvalidField:
        return []
    now = _parts(plan, shown)
    return [name for name in PARTS if before.get(name) != now[name]]


def opened_at(token: str) -> datetime | None:
    """When the page was shown that a form was posted from; None: it cannot say so."""
    try:
        return parse_instant(_read(token).at, "/shown_at")
    except Problem:
        return None


def shown_since(token: str, plan: Plan, shown: Shown) -> datetime | None:
    """Since when exactly this has been on the screen; None: its page cannot say so."""
    try:
        before = _read(token)
        at = parse_instant(before.at, "/shown_at")
    except Problem:
        return None
    return at if before.parts == _parts(plan, shown) else None


def ballot(post: Fields, plan: Plan, *, stepped_up: bool = False) -> Ballot:
    """The ballot of a posted form; `plan` holds the assessment of now (`oversight.current`).

    Raises UnknownField, IdMismatch or InvalidField (422); what depends on the plan's state is
    judged under its lock by `decisions.decide` (B-3).
    """
    _check_fields(post, plan, _DECISION)
    verdict = post.get("verdict", "")
    if verdict not in Decision.Verdict.values:
        raise InvalidField(_("There is no such verdict."), pointer="/verdict")
    if token := post.get("shown_at", ""):
        _read(token)
    since = shown_since(token, plan, plan)
    opened = opened_changes(post) >= {str(number) for number in range(len(plan.actions))}
    note, digest = post.get("note", ""), post.get("shown_digest", "")
    return Ballot(verdict, note, digest, since, stepped_up, opened)


def opened_changes(post: Fields) -> set[str]:
    """The numbers of the changes that were opened on the page: a box for each of them."""
    boxes = post.getlist("opened") if hasattr(post, "getlist") else [post.get("opened", "")]
    return set(boxes)


def comment(post: Fields, plan: Plan) -> str:
    """The text of a posted comment; UnknownField or IdMismatch (422)."""
    _check_fields(post, plan, _DECISION | {"talk"})
    text: str = post.get("comment", "")
    return text


def withdrawal_note(post: Fields, plan: Plan) -> str:
    """The note of a posted withdrawal; UnknownField or IdMismatch (422)."""
    _check_fields(post, plan, _WITHDRAWAL)
    note: str = post.get("note", "")
    return note


def confirmation(plan: Plan, risk: str) -> str:
    """What must be typed to approve a critical plan: a value of the plan itself (SEC-23)."""
    if risk != Operation.Risk.CRITICAL:
        return ""
    value = headline(plan)
    if value and len(value) <= _LONGEST_CONFIRMATION:
        return value
    return plan.objects_touched[0] if plan.objects_touched else plan.plan_id


def check_confirmation(post: Fields, plan: Plan) -> None:
    """ConfirmationMismatch (422) unless an approval of a critical plan repeats its value."""
    wanted = confirmation(plan, plan.risk)
    typed = re.sub(r"\s+", " ", post.get("confirm", "")).strip()
    if wanted and post.get("verdict") == Decision.Verdict.APPROVE and typed != wanted:
        raise ConfirmationMismatch(
            _("To approve this plan, type: {wanted}").format(wanted=wanted), pointer="/confirm"
        )


def _check_fields(post: Fields, plan: Plan, known: frozenset[str]) -> None:
    """Nothing but the form's own fields, each once: identity comes from the session (BI-41)."""
    for name in post:
        if name not in known | _ALWAYS:
            raise UnknownField(
                _("The form has no field {name}.").format(name=repr(name[:60])),
                pointer=f"/{name[:60]}",
            )
        if name != "opened" and hasattr(post, "getlist") and len(post.getlist(name)) > 1:
            raise InvalidField(
                _("The field {name} is there twice.").format(name=name), pointer=f"/{name}"
            )
    for name, ours in (("target", plan.target.name), ("plan_id", plan.plan_id)):
        if post.get(name, ours) != ours:
            raise IdMismatch(pointer=f"/{name}")


def _parts(plan: Plan, shown: Shown) -> dict[str, str]:
    whole = what_is_shown(plan, shown)
    return {name: sha256_hex(jcs(whole[name]))[:16] for name in PARTS}


def _read(token: str) -> ShownAt:
    try:
        value = signing.loads(token, salt=_SALT)
        return ShownAt(value["at"], value["parts"])
    except (signing.BadSignature, KeyError, TypeError) as error:
        raise InvalidField(_("This page did not come from here."), pointer="/shown_at") from error
