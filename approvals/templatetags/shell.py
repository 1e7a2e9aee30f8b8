"""Small words of every page: counts, times left, hostile text made visible."""

from __future__ import annotations

from django import template
from django.utils.html import format_html

from approvals.queue import CAP
from audit.safe_text import visible

register = template.Library()


@register.filter
def capped(number: int) -> str:
    """`7`; at the cap of all counts `999+`."""
    return f"{CAP - 1}+" if number >= CAP else str(number)


@register.filter
def left(milliseconds: int | None) -> str:
    """Time left as `0:48`, `7:42`, `1 h 05`, `3 d 4 h`; the same words as countdown.js writes."""
    seconds = max(0, milliseconds or 0) // 1000
    if seconds < 3600:
        return f"{seconds // 60}:{seconds % 60:02}"
    if seconds < 86400:
        return f"{seconds // 3600} h {seconds % 3600 // 60:02}"
    return f"{seconds // 86400} d {seconds % 86400 // 3600} h"


@register.filter
def countdown(milliseconds: int, form: str) -> str:
    """The element that countdown.js counts down; at zero it switches the form off."""
    element = '<time role="timer" data-decide-in-ms="{}" data-disables="{}">{}</time>'
    return format_html(element, milliseconds, form, left(milliseconds))


@register.filter
def shown(text: object) -> str:
    """Text of agents and targets with deceptive code points written out, lines kept (SEC-13)."""
    return visible(str(text), lines=True)
