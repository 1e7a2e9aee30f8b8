"""Mail to one person: plain text, in a thread per intent, and what the mail server made of it."""

from __future__ import annotations

import smtplib
import time
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage, mailers
from django.urls import reverse
from django.utils.translation import gettext as _

from approvals.notices.rows import Notice
from approvals.notices.words import Words, words
from plans.delivering import Outcome, Verdict
from plans.gateway import let_the_database_go

# After a failure of the server, and not of one letter, the others wait so long, too.
PAUSE_SECONDS: Final = 15.0
_LONGEST_SUBJECT: Final = 120


def send(notice: Notice, now: datetime) -> Verdict:
    """One letter over a connection of its own. A code 5xx for it alone ends it, and no other."""
    message = letter(notice, now)
    let_the_database_go()
    began = time.monotonic()
    verdict = _send(message)
    return replace(verdict, elapsed_ms=(time.monotonic() - began) * 1000)


def _send(message: EmailMessage) -> Verdict:
    mailer = mailers["default"]
    try:
        mailer.open()
    except OSError as fault:
        with suppress(OSError):
            mailer.close()
        return _server(Outcome.NOT_SENT, fault)
    try:
        mailer.send_messages([message])
    except ValueError:
        return Verdict(Outcome.REFUSED, fault="address: it is not one", hopeless=True)
    except smtplib.SMTPRecipientsRefused as refused:
        code = next(iter(refused.recipients.values()))[0]
        return _refused("recipient", code)
    except smtplib.SMTPDataError as refused:
        return _refused("content", refused.smtp_code)
    except OSError as fault:
        return _server(Outcome.NO_ANSWER, fault)
    finally:
        with suppress(OSError):
            mailer.close()
    return Verdict(Outcome.DELIVERED, http_status=250)


def _refused(what: str, code: int) -> Verdict:
    return Verdict(
        Outcome.REFUSED,
        http_status=code,
        fault=f"{what}: refused by the mail server",
        hopeless=500 <= code < 600,
    )


def _server(outcome: Outcome, fault: OSError) -> Verdict:
    """In our words and the system's: a server's own may repeat what was sent to it."""
    code = getattr(fault, "smtp_code", None)
    if isinstance(fault, smtplib.SMTPAuthenticationError):
        said = "it does not accept our user name and password"
    elif isinstance(fault, smtplib.SMTPNotSupportedError):
        said = "it offers no STARTTLS, or no sign-in"
    elif isinstance(fault, smtplib.SMTPResponseException):
        said = "it refused"
    elif isinstance(fault, TimeoutError):
        said = "it did not answer in time"
    elif isinstance(fault, smtplib.SMTPException):
        said = "it hung up"
    else:
        said = fault.strerror or type(fault).__name__
    return Verdict(
        outcome,
        http_status=code if isinstance(code, int) and code > 0 else None,
        fault=f"server: {said}"[:200],
        retry_after=PAUSE_SECONDS,
    )


def letter(notice: Notice, now: datetime) -> EmailMessage:
    """A letter that decides nothing: no token, no secret, no link but those of pages (SEC-10)."""
    person, said = notice.person, words(notice, now)
    assert person is not None
    return EmailMessage(
        subject=_subject(notice, said),
        body=_body(said),
        from_email=settings.DEFAULT_FROM_EMAIL,
        to=[person.email],
        headers=_headers(notice),
    )


def _subject(notice: Notice, said: Words) -> str:
    title = said.title
    if len(title) > _LONGEST_SUBJECT:
        title = f"{title[:_LONGEST_SUBJECT]}…"
    again = "Re: " if notice.moment == Notice.Moment.OVER else ""
    if notice.moment == Notice.Moment.UNRESOLVED:
        title = _("Needs a person: {title}").format(title=title)
    return f"{again}[Countersign] {title}"


def _body(said: Words) -> str:
    wide = max(len(name) for name, _ in said.facts)
    facts = [f"{name:<{wide}}  {value}" for name, value in said.facts]
    return "\n".join(
        [
            f"{said.heading}.",
            "",
            f"    {said.title}",
            "",
            *facts,
            "",
            _("The page shows everything: {url}").format(url=said.url),
            "",
            _("Nothing is decided by mail, and this address reads no answers."),
            "-- ",
            _("No more of these: {url}").format(url=settings.BASE_URL + reverse("my_notices")),
            "",
        ]
    )


def _headers(notice: Notice) -> dict[str, str]:
    """Every plan of one intent is one thread; a second try has the same Message-ID."""
    host = urlsplit(settings.BASE_URL).hostname or "countersign"
    thread, first = f"<intent.{notice.plan.intent_id}@{host}>", _id(notice, "waits", host)
    headers = {
        "Message-ID": _id(notice, notice.moment, host),
        "References": thread,
        "List-Id": f"Countersign <notices.{host}>",
        "List-Unsubscribe": f"<{settings.BASE_URL}{reverse('my_notices')}>",
        "Auto-Submitted": "auto-generated",
    }
    if notice.moment != Notice.Moment.WAITS:
        headers |= {"References": f"{thread} {first}", "In-Reply-To": first}
    return headers


def _id(notice: Notice, moment: str, host: str) -> str:
    return f"<{notice.plan_id}.{moment}.{notice.person_id}@{host}>"
