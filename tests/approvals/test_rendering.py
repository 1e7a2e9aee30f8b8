"""Values on the page: nothing hidden, nothing cut, nothing that looks like something else."""

from __future__ import annotations

from typing import Any

import pytest

from approvals import rendering
from approvals.lookalikes import same_look
from approvals.rendering import MISSING, show


@pytest.mark.parametrize(
    ("hidden", "spelt"),
    [
        ("\u202e", "⟨U+202E⟩"),
        ("\u2066", "⟨U+2066⟩"),
        ("\u200b", "⟨U+200B⟩"),
        ("\ufeff", "⟨U+FEFF⟩"),
        ("\U000e0041", "⟨U+E0041⟩"),
        ("\u3164", "⟨U+3164⟩"),
        ("\u115f", "⟨U+115F⟩"),
        ("\x1b[31m", "⟨U+001B⟩[31m"),
        ("\r", "⟨U+000D⟩"),
        ("\t", "⟨U+0009⟩"),
        ("\u00a0", "⟨U+00A0⟩"),
        ("\u2028", "⟨U+2028⟩"),
        ("\ue000", "⟨U+E000⟩"),
        ("\u034f", "⟨U+034F⟩"),
        ("\ufe0f", "⟨U+FE0F⟩"),
    ],
)
def test_what_hides_is_spelt_out(hidden: str, spelt: str) -> None:
    assert show(f"a{hidden}b").text == f"a{spelt}b"
    assert rendering.prose(f"a{hidden}b") == f"a{spelt}b"
    assert spelt in show({"k": [f"a{hidden}b"]}).text or hidden in "\x1b[31m\r\t"


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ("p\u0430id", "mixed scripts"),
        ("apple.\u0441\u043e.uk", "mixed scripts"),
        ("\u0441\u043e\u0441\u043e", "looks Latin"),
        ("\u0430pple.com", "host in punycode"),
        ("xn--pple-43d.com", "punycode host"),
        ("\u0664\u0668", "foreign digits"),
        ("a\u200bb", "hidden characters"),
        ("a⟨U+200B⟩b", "writes our marks itself"),
    ],
)
def test_what_looks_like_something_else_is_badged(value: str, label: str) -> None:
    assert label in [badge.label for badge in show(value).badges]
    assert label in [badge.label for badge in show({"k": value}).badges]


def test_a_badge_names_the_code_points() -> None:
    assert show("p\u0430id").badges[0].detail == "\u0430 U+0430"


@pytest.mark.parametrize("value", ["Zürich", "Ærøskøbing", "東京Tower", "Привет мир", "paid"])
def test_honest_words_have_no_badge(value: str) -> None:
    assert show(value).badges == ()


def test_identifiers_are_expected_to_be_ascii() -> None:
    assert [b.label for b in rendering.name("vendor/zürich").badges] == ["not plain ASCII"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://\u0430pple.com/pay?x=1", "https://xn--pple-43d.com/pay?x=1"),
        ("mail ops@b\u00fccher.example", "mail ops@xn--bcher-kva.example"),
        ("https://apple.com", "https://apple.com"),
        ("javascript:alert(1)", "javascript:alert(1)"),
    ],
)
def test_hosts_are_shown_in_punycode(text: str, shown: str) -> None:
    assert show(text).text == shown


@pytest.mark.parametrize(
    ("value", "text", "kind"),
    [
        (None, "null", "no value"),
        (MISSING, "not given", "missing"),
        (True, "true", "true or false"),
        ("null", '"null"', "text"),
        ("true", '"true"', "text"),
        ("48000", '"48000"', "text"),
        ("-4.8e4", '"-4.8e4"', "text"),
        ("", '""', "text"),
        ("[1]", '"[1]"', "text"),
        ('"x"', '""x""', "text"),
        (48000, "48000", ""),
        (0.1, "0.1", ""),
        ("paid", "paid", ""),
        ([], "[]", "structure"),
    ],
)
def test_kinds_of_values_cannot_be_confused(value: object, text: str, kind: str) -> None:
    shown = show(value)  # type: ignore[arg-type]
    assert (shown.text, shown.kind) == (text, kind)


def test_a_formatted_value_keeps_the_raw_one_beside_it() -> None:
    shown = show(48000, "money:USD")
    assert (shown.text, shown.raw) == ("480.00 USD", "48000")


@pytest.mark.parametrize("value", ["a lot", 1.5, True, None, "٤٨٠٠٠", " 48_000 "])
def test_a_value_that_does_not_fit_its_format_is_shown_as_it_is(value: object) -> None:
    assert show(value, "money:USD") == show(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a  b", "a␣␣b"),
        (" a ", "␣a␣"),
        ("a b", "a b"),
        ("a" + " " * 5000 + "b", "a␣\u00d75000b"),
        ("a\nb", "a⏎\nb"),
        ("a" + "\n" * 5000 + "b", "a⏎\u00d75000\nb"),
    ],
)
def test_empty_space_is_made_visible(text: str, shown: str) -> None:
    assert show(text).text == shown


def test_a_screenful_of_line_ends_does_not_push_words_out_of_sight() -> None:
    assert rendering.prose("fine" + "\n" * 5000 + "not") == "fine\n⟨5000 line ends⟩\nnot"


def test_long_values_are_whole_and_said_to_be_long() -> None:
    value = "x" * 65_535 + "y"
    shown = show(value)
    assert shown.text == value
    assert shown.long
    assert shown.size == "65,536 characters"
    assert not show("x" * 240).long
    assert show("x\n" * 8).long


def test_structures_are_whole() -> None:
    value: Any = {"to": {"iban": "GB00" + "1" * 60, "name": 'A "B"  C'}, "n": [1, None, True]}
    assert show(value).text.splitlines() == [
        "{",
        '  "to": {',
        '    "iban": "GB00' + "1" * 60 + '",',
        '    "name": "A \\"B\\"␣␣C"',
        "  },",
        '  "n": [1, null, true]',
        "}",
    ]


@pytest.mark.parametrize(
    ("before", "after", "where"),
    [
        ("account", "acc\u043eunt", "character 4 (U+006F, U+043E)"),
        ("caf\u00e9", "cafe\u0301", "character 4 (U+00E9, U+0065)"),
        ("paid", "paid\u200b", "character 5 (the end, U+200B)"),
        ("GB1O", "GB10", "character 4 (U+004F, U+0030)"),
    ],
)
def test_twins_are_told_apart_by_code_point(before: str, after: str, where: str) -> None:
    assert same_look(before, after) == f"looks the same, differs at {where}"


@pytest.mark.parametrize(("before", "after"), [("paid", "paid"), ("paid", "refunded")])
def test_it_is_silent_where_one_sees_the_difference(before: str, after: str) -> None:
    assert same_look(before, after) == ""


def test_each_direction_of_writing_gets_a_piece_of_its_own() -> None:
    pieces = rendering.runs("Pay \u05d0\u05d1 100 USD to x")
    assert pieces == [
        "Pay ",
        "\u05d0\u05d1 100 ",
        "USD to x",
    ]
    assert rendering.runs("Refund 280.00 USD") == ["Refund 280.00 USD"]
    assert rendering.runs("") == []


@pytest.mark.parametrize(
    "text",
    ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "{{7*7}}", 'hx-get="/x"'],
)
def test_markup_stays_text_for_the_template_to_escape(text: str) -> None:
    assert show(f"x {text}").text == f"x {text}"
    assert rendering.prose(text) == text


def test_stored_bytes_are_shown_with_every_byte() -> None:
    assert rendering.exact_text(b'{"a":1}').text == '{"a":1}'
    assert rendering.exact_text(b"\xff").text == "\\xff"
