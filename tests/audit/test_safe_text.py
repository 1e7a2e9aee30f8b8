"""Text that deceives is shown for what it is (SEC-13)."""

from __future__ import annotations

import unicodedata

import pytest

from audit.safe_text import visible


@pytest.mark.parametrize(
    "code_point",
    [
        0x00,
        0x08,
        0x09,
        0x0A,
        0x0D,
        0x1B,
        0x7F,
        0x85,
        0xA0,
        0xAD,
        0x34F,
        0x61C,
        0x115F,
        0x1160,
        0x17B4,
        0x180E,
        0x200B,
        0x200D,
        0x200E,
        0x2028,
        0x2029,
        0x202E,
        0x2060,
        0x2066,
        0x2069,
        0x2800,
        0x3164,
        0xD800,
        0xE000,
        0xFE0F,
        0xFEFF,
        0xFFA0,
        0xFFFF,
        0x1D173,
        0xE0001,
        0xE0041,
        0xE0100,
        0xF0000,
        0x10FFFF,
    ],
)
def test_it_writes_out_what_hides(code_point: int) -> None:
    assert visible(f"a{chr(code_point)}b") == f"a⟨U+{code_point:04X}⟩b"


@pytest.mark.parametrize(
    "text", ["", "Refund 280.00 USD", "naïve Ωμέγα 東京 نص 🙂", "<b>&amp;</b>"]
)
def test_it_leaves_ordinary_text_alone(text: str) -> None:
    assert visible(text) == text


def test_it_keeps_line_feeds_where_lines_are_wanted() -> None:
    assert visible("one\ntwo\r", lines=True) == "one\ntwo⟨U+000D⟩"


def test_no_control_format_private_or_unassigned_code_point_passes() -> None:
    every = "".join(map(chr, range(0x110000)))
    passed = {unicodedata.category(character) for character in visible(every)}
    assert not passed & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
