"""Agent text that tries to steer the reviewer: flagged beside it, never hidden (SEC-24, BI-37)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from approvals.lookalikes import plain_look

# Bounded: agents choose the text, and a screenful of spaces must not cost a second.
_SPACE = r"[ \t_\-*]{0,8}"
_PATTERNS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE | re.MULTILINE), says)
    for pattern, says in (
        (
            r"\b(pre[\s-]?(approved|authori[sz]ed|cleared|vetted)"
            r"|(already|has been|have been|was|were|is|been)[\s-](\w+[\s-])?"
            r"(approved|reviewed|authori[sz]ed|cleared|vetted|signed[\s-]off)"
            r"|(approved|authori[sz]ed|cleared|vetted|signed off) by)\b",
            _("claims that somebody has approved this already"),
        ),
        (
            r"\b((click|press|hit|choose|select|use|push)\W{1,3}(on\W{1,3})?(the\W{1,3})?"
            r"(approve|accept|confirm|commit|yes|green)"
            r"|approve\W{1,3}(this|it|now|immediately|asap|quickly|and commit|without|the plan)"
            r"|(please|must|should|can|need to|have to|safe to|safely|just|to)\W{1,3}"
            r"(\w+\W{1,3})?approve)\b",
            _("tells the reviewer what to decide"),
        ),
        (
            r"\b(urgent(ly)?|asap|immediately|right away|right now|time[\s-]critical|hurry"
            r"|no time to|before it is too late|emergency)\b",
            _("presses for time"),
        ),
        (
            r"\b((ignore|disregard|overlook|skip|bypass)\b.{0,60}\b(warnings?|banners?|policy|"
            r"policies|instructions?|checks?|diff|review|above|below|previous|differences?|rules?)"
            r"|(no need to|don'?t|do not) (check|review|read|verify|look))",
            _("asks the reviewer not to look"),
        ),
        (
            rf"^{_SPACE}[\[<(#=>|]{{0,4}}{_SPACE}(system|admin(istrator)?|security|countersign|compliance"
            rf"|verified|notice|warning|important|assistant|user)( \w+)?{_SPACE}[\])>=|]{{0,4}} ?:",
            _("speaks as if it were the system"),
        ),
        (
            r"(\[\s*(approve|approved|reject|verified|safe|ok)\s*\]|[✓✔✅☑🟢🔒🛡]"
            r"|\b(approve and commit|read from \w+ \d|will change\b.{0,20}\bshown))",
            _("imitates this page"),
        ),
    )
)


@dataclass(frozen=True, slots=True)
class Flag:
    """One reason to be careful, and the words that gave it."""

    says: str
    quote: str


def flags(texts: Iterable[str]) -> list[Flag]:
    """What the agent's texts try on the reviewer: each kind once, with its first words.

    Texts are compared as they look, so that foreign letters and hidden characters do not help.
    """
    found: dict[str, Flag] = {}
    for text in texts:
        looks = plain_look(text)
        for pattern, says in _PATTERNS:
            match = None if says in found else pattern.search(looks)
            if match:
                found[says] = Flag(gettext(says), " ".join(match[0].split()))
    return list(found.values())
