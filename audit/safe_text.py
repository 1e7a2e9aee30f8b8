"""Hostile text made visible: nothing that hides, reorders or blanks may pass unseen (SEC-13)."""

from __future__ import annotations

from typing import Final

# Python calls these printable, yet they show as nothing or as a blank: default-ignorable letters
# and marks (Hangul fillers, Khmer inherent vowels, variation selectors) and the empty Braille cell.
_BLANK: Final = frozenset(
    {
        0x034F,
        0x115F,
        0x1160,
        0x17B4,
        0x17B5,
        *range(0x180B, 0x1810),
        0x2800,
        0x3164,
        *range(0xFE00, 0xFE10),
        0xFFA0,
        *range(0xE0100, 0xE01F0),
    }
)


def visible(text: str, *, lines: bool = False) -> str:
    """The text with every deceptive code point written out, like `⟨U+202E⟩` (SEC-13).

    Written out are controls, format, bidi, zero-width, tag, variation, private-use, unassigned
    and surrogate code points, every separator but the plain space, and letters that show as a
    blank. With `lines`, a line feed stays a line feed: for texts of several lines.
    """
    if text.isascii() and text.isprintable():
        return text
    kept = "\n" if lines else ""
    return "".join(
        character if character in kept or not is_deceptive(character) else _spelt(character)
        for character in text
    )


def is_deceptive(character: str) -> bool:
    """Whether one code point is never shown as itself (SEC-13)."""
    # `isprintable` is false for categories C* and Z* except the plain space: all but _BLANK.
    return not character.isprintable() or ord(character) in _BLANK


def _spelt(character: str) -> str:
    return f"⟨U+{ord(character):04X}⟩"
