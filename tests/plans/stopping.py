"""People who stop all sending and let it go, and the trail's words for it."""

from __future__ import annotations

from audit.actors import Actor
from audit.models import Event
from audit.sentences import sentence

OTTO = Actor("person", "1", "otto")
GRACE = Actor("person", "2", "grace")
LEO = Actor("person", "3", "leo")


def anybody(_actor: str) -> bool:
    return True


def words() -> list[str]:
    rows = Event.objects.filter(action__startswith="emergency.").order_by("id")
    return [str(sentence(event)) for event in rows]
