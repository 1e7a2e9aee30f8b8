"""Who is signed in: read at every request of a person, so each is one composed statement."""

from __future__ import annotations

from typing import Final

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.db.models import BigIntegerField, TextField

from audit.models import ClockTimestamp
from audit.statements import Slot, Statement

_SESSION: Final = Statement(
    lambda: Session.objects.filter(
        session_key=Slot("key", TextField()), expire_date__gt=ClockTimestamp()
    )
)
_PERSON: Final = Statement(lambda: User.objects.filter(pk=Slot("pk", BigIntegerField())))


class SessionStore(db.SessionStore):
    """Django's sessions in the database; they end by the database's clock (C-1)."""

    def _get_session_from_db(self) -> Session | None:
        found = _SESSION.first(key=self.session_key)
        if found is None:
            self._session_key = None
        return found


class LocalAccounts(ModelBackend):
    """Django's own accounts; a person that was switched off is nobody."""

    def get_user(self, user_id: int) -> User | None:
        person = _PERSON.first(pk=user_id)
        return person if person is not None and self.user_can_authenticate(person) else None
