"""Texts that look like others: mixed scripts, twins by code point, hosts (SEC-13, BI-32…34)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import idna
from django.utils.translation import gettext as _

from audit.safe_text import is_deceptive, visible

# Letters of other scripts, each with the Latin one that it is taken for.
_TWINS: Final = str.maketrans(
    dict(
        zip(
            "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u0501\u051b\u051d\u04bb\u04cf"
            "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0405\u0406\u0408\u0423"
            "\u03b1\u03bf\u03bd\u03c1\u03c5\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f"
            "\u03a1\u03a4\u03a5\u03a7\u0578\u057d\u0585\u0251\u0261\u0131\u2010\u2011\u2212\u2044\u2215",
            "aeopcyxsijdqwhlABEKMHOPCTXSIJYaovpuABEZHIKMNOPTYXnuoagi---//",
            strict=True,
        )
    )
)
# In most typefaces these cannot be told apart.
_STROKES: Final = str.maketrans("I1|0", "lllO")
# Names of characters begin with their script, except for these, which belong to every script.
_COMMON: Final = frozenset({"MODIFIER", "MICRO", "FEMININE", "MASCULINE", "COMBINING"})
# Scripts that are honestly written side by side (UTS 39, "highly restrictive").
_TOGETHER: Final = (
    frozenset({"LATIN", "CJK", "HIRAGANA", "KATAKANA"}),
    frozenset({"LATIN", "CJK", "HANGUL"}),
    frozenset({"LATIN", "CJK", "BOPOMOFO"}),
)
_CHUNK = re.compile(r"\S+")
_HOST = re.compile(r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?[.\u3002\uff0e\uff61])+[^\W\d_][\w-]{1,62}")
_CODE_POINTS_NAMED: Final = 6


@dataclass(frozen=True, slots=True)
class Badge:
    """A warning beside a value: its few words, and the code points behind them."""

    label: str
    detail: str = ""


def badges(text: str, *, identifier: bool = False) -> tuple[Badge, ...]:
    """What a reader cannot see in a text. Identifiers are expected to be plain ASCII."""
    if text.isascii():
        return (Badge(_("punycode host")),) if "xn--" in text else ()
    found = [_hidden(text), *_hosts(text), _digits(text), _marks(text)]
    foreign = [chunk for chunk in _CHUNK.findall(text) if _is_mixed(chunk)]
    if foreign:
        found.append(Badge(_("mixed scripts"), _code_points("".join(foreign))))
    elif identifier:
        found.append(Badge(_("not plain ASCII"), _code_points(text)))
    elif twins := [chunk for chunk in _CHUNK.findall(text) if _is_twin(chunk)]:
        found.append(Badge(_("looks Latin"), _code_points("".join(twins))))
    return tuple(badge for badge in found if badge)


def same_look(before: str, after: str) -> str:
    """`looks the same, differs at character 7 (U+0061, U+0430)`; empty if one sees a difference."""
    if before == after or _skeleton(before) != _skeleton(after):
        return ""
    pairs = enumerate(zip(before, after, strict=False))
    at = next((n for n, (left, right) in pairs if left != right), min(len(before), len(after)))
    text = _("looks the same, differs at character {number} ({before}, {after})")
    return text.format(number=at + 1, before=_at(before, at), after=_at(after, at))


def punycoded(text: str) -> str:
    """The text with every host in it as the network will read it: `xn--pple-43d.com`."""
    return text if text.isascii() else _HOST.sub(lambda match: _ascii_host(match[0]), text)


def _hidden(text: str) -> Badge | None:
    hidden = [c for c in text if c not in "\n\t\r" and is_deceptive(c)]
    return Badge(_("hidden characters"), _code_points("".join(hidden))) if hidden else None


def _marks(text: str) -> Badge | None:
    """The signs by which a page writes what cannot be seen, written by somebody else."""
    written = [mark for mark in "⟨⟩␣⏎" if mark in text]
    return Badge(_("writes our marks itself"), " ".join(written)) if written else None


def _hosts(text: str) -> list[Badge]:
    written = [host for host in _HOST.findall(text) if not host.isascii()]
    return [
        Badge(_("host in punycode"), _("written {host}").format(host=visible(host)))
        for host in written
    ]


def _digits(text: str) -> Badge | None:
    digits = [c for c in text if c.isdigit() and not c.isascii()]
    return Badge(_("foreign digits"), _code_points("".join(digits))) if digits else None


def _ascii_host(host: str) -> str:
    return ".".join(_ascii_label(label) for label in re.split("[.\u3002\uff0e\uff61]", host))


def _ascii_label(label: str) -> str:
    if label.isascii():
        return label
    try:
        return idna.encode(label, uts46=True).decode()
    except idna.IDNAError:
        return "xn--" + label.encode("punycode").decode()


def _is_mixed(chunk: str) -> bool:
    used = {script for script in map(_script, chunk) if script}
    return len(used) > 1 and not any(used <= together for together in _TOGETHER)


def _is_twin(chunk: str) -> bool:
    """A word of one foreign script in which every letter has a Latin twin."""
    letters = [c for c in chunk if c.isalpha()]
    return (
        len(letters) > 1
        and not any(c.isascii() for c in letters)
        and "".join(letters).translate(_TWINS).isascii()
    )


def _script(character: str) -> str:
    """The script of a letter in Unicode's own capitals; empty for everything else."""
    if not character.isalpha():
        return ""
    word = unicodedata.name(character, "UNNAMED").split(" ")[0]
    return "" if word in _COMMON else word


def plain_look(text: str) -> str:
    """The text as it looks to somebody who reads Latin letters; line ends stay."""
    if text.isascii():
        return text
    flat = unicodedata.normalize("NFKC", text)
    return "".join(c for c in flat if c == "\n" or not is_deceptive(c)).translate(_TWINS)


def _skeleton(text: str) -> str:
    """Two texts with one skeleton look alike (after UTS 39)."""
    kept = "".join(c for c in plain_look(text) if not is_deceptive(c))
    return kept.translate(_STROKES).replace("rn", "m")


def _code_points(text: str) -> str:
    """Each foreign character once, like `ä U+00E4, ö U+00F6 and 2 more`."""
    foreign = [c for c in dict.fromkeys(text) if not c.isascii()]
    named = ", ".join(_named(foreign[:_CODE_POINTS_NAMED]))
    rest = len(foreign) - _CODE_POINTS_NAMED
    return _("{named} and {rest} more").format(named=named, rest=rest) if rest > 0 else named


def _named(characters: Iterable[str]) -> list[str]:
    return [visible(c) if is_deceptive(c) else f"{c} U+{ord(c):04X}" for c in characters]


def _at(text: str, index: int) -> str:
    return f"U+{ord(text[index]):04X}" if index < len(text) else _("the end")
