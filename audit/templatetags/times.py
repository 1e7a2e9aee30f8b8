"""Moments of a page: in UTC, to which zones.js puts the reader's own time."""

from __future__ import annotations

from datetime import datetime

from django import template
from django.utils.dates import MONTHS_3
from django.utils.html import format_html
from django.utils.translation import gettext as _

register = template.Library()


@register.filter
def instant(when: datetime | None) -> str:
    """`14 Mar 09:36:41 UTC`: one zone for everybody who talks about the same event."""
    return moment(when, f"{_date(when)} {when:%H:%M:%S} UTC") if when else _("never")


@register.filter
def stamp(when: datetime | None) -> str:
    """`14 Mar 09:36:41`, on pages that say once that times are UTC."""
    return moment(when, f"{_date(when)} {when:%H:%M:%S}") if when else ""


@register.filter
def clock(when: datetime | None, zone: str = "") -> str:
    """`09:36:41`, or `09:36:41 UTC`; the day is told to who points at it."""
    return moment(when, f"{when:%H:%M:%S} {zone}".rstrip()) if when else ""


def moment(when: datetime, text: str) -> str:
    """The element that zones.js looks for; its text is in UTC."""
    full = f"{when:%Y-%m-%d %H:%M:%S} UTC"
    return format_html('<time datetime="{}" title="{}">{}</time>', when.isoformat(), full, text)


def _date(when: datetime) -> str:
    return f"{when.day} {str(MONTHS_3[when.month]).title()}"
