"""Words of the report about a target's contract."""

from __future__ import annotations

from django import template
from django.utils.html import format_html, format_html_join

from audit.safe_text import visible

register = template.Library()


@register.filter
def coded(text: object) -> str:
    """A sentence with what stands between backticks as code, and hostile text made visible."""
    parts = visible(str(text), lines=True).split("`")
    parts[0] = parts[0][:1].upper() + parts[0][1:]
    forms = ("{}", "<code>{}</code>")
    pieces = ((format_html(forms[place % 2], part),) for place, part in enumerate(parts))
    return format_html_join("", "{}", pieces)
