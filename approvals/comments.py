"""What people say to each other about a plan: it decides nothing, and nothing of it is changed.

A comment is in no digest and in no answer to the agent: what the agent must hear is the note of a
decision ("Request changes").
"""

from __future__ import annotations

from typing import Final

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from approvals.models import Comment
from audit import actors
from audit.actions import Action
from audit.recording import record
from plans.errors import InvalidField
from plans.hints import hint
from plans.models import Plan

LONGEST: Final = 2_000
MOST: Final = 200


def add(person: User, plan_pk: int, text: str) -> Comment:
    """Store one comment with its event; sent twice in a row it is one.

    Who may see the plan may comment on it, whatever its status; that is for the caller to say.
    Raises InvalidField (422) with the pointer `/comment`.
    """
    text = checked(text)
    with transaction.atomic():
        plan = Plan.objects.locked(plan_pk)
        last = plan.comments.order_by("-pk").first()
        if last is not None and (last.person_id, last.text) == (person.pk, text):
            return last
        if plan.comments.count() >= MOST:
            raise InvalidField(
                _("A plan has at most {number} comments.").format(number=MOST), pointer="/comment"
            )
        comment = Comment.objects.create(plan=plan, person=person, text=text)
        record(Action.COMMENT_ADDED, actors.person(person), plan.subject(), {"note": text})
        hint()
    return comment


def add_typed(person: User, plan_pk: int, text: str) -> None:
    """What was typed and not sent, where a decision is: it goes before. InvalidField (422)."""
    if text.strip():
        add(person, plan_pk, text)


def checked(text: str) -> str:
    """The text as it is stored: line feeds alone, no blanks around it. InvalidField (422)."""
    text = text.replace("\r\n", "\n").strip()
    if not text:
        raise InvalidField(_("A comment needs some words."), pointer="/comment")
    if len(text) > LONGEST:
        words = _("A comment has at most {most} characters; this one has {number}.")
        detail = words.format(most=f"{LONGEST:,}", number=f"{len(text):,}")
        raise InvalidField(detail, pointer="/comment")
    if "\x00" in text:
        raise InvalidField(_("A comment cannot hold the character NUL."), pointer="/comment")
    return text
