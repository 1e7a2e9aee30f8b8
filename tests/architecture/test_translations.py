"""Every text that people read is in the reach of translators."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest
from django.template.base import Lexer, TokenType

from plans.errors import CATALOGUE
from plans.problem_words import WORDS
from tests.architecture.test_source import ROOT, files

# Texts that are the same in every language: names, and what stands for itself.
SAME = re.compile(
    r"Countersign|webhook-id|SMTP|HTTP|UTC|sha256|ms\b|\bs\b|&\w+;"
    r"|https://agents\.example\.com/countersign|https://hooks\.slack\.com/services|2026-03-14"
)
TEXTS = {"aria-label", "title", "placeholder", "alt", "label", "aria-description"}
MACHINE = {"code", "pre", "kbd", "script", "style", "svg"}
VOID = {"input", "meta", "link", "br", "hr", "img", "path", "circle"}
# A text handed to a part: `with what="to decide"` instead of `what=_("to decide")`.
HANDED = re.compile(
    r'\b(?!name=|id=|tone=|stage=|what=\"(?:mail|webhook)\")\w+="([A-Z][^"]*|[^"]* [^"]*)"'
)
# The reference of the REST interface quotes the OpenAPI document, which is in English.
ENGLISH = "templates/documentation/"
TEMPLATES = [
    str(path.relative_to(ROOT))
    for path in files("templates/*.html")
    if ENGLISH not in str(path.relative_to(ROOT))
]


class Reader(HTMLParser):
    """Collects the words that a page shows, or says to a screen reader."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.open: list[str] = []
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        told = TEXTS | {name for name, _ in attrs if name.startswith("data-") and "-said" in name}
        self.found += [value for name, value in attrs if name in told and value]

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            del self.open[len(self.open) - 1 - self.open[::-1].index(tag) :]

    def handle_data(self, data: str) -> None:
        if not MACHINE & set(self.open):
            self.found.append(data)


def untranslated(source: str) -> Iterator[str]:
    """Words outside `translate` and `blocktranslate`; what is filled in counts as data."""
    kept, within = [], ""
    for token in Lexer(source).tokenize():
        words = token.contents.split()
        if token.token_type == TokenType.BLOCK and words[0] in ("blocktranslate", "comment"):
            within = f"end{words[0]}"
        elif token.token_type == TokenType.BLOCK and words[0] == within:
            within = ""
        elif token.token_type == TokenType.BLOCK and words[0] == "include":
            yield from HANDED.findall(token.contents)
        elif token.token_type == TokenType.TEXT and not within:
            kept.append(token.contents)
    reader = Reader()
    reader.feed("".join(kept))
    reader.close()
    yield from (text.strip() for text in reader.found if re.search("[A-Za-z]", SAME.sub("", text)))


@pytest.mark.parametrize("name", TEMPLATES)
def test_no_template_holds_a_text_that_cannot_be_translated(name: str) -> None:
    classes = re.compile(r"{% block (body_class|main_class) %}[^{]*{%")
    source = classes.sub("{% block x %}{%", (ROOT / name).read_text(encoding="utf-8"))
    assert list(untranslated(source)) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("<p>Sign in</p>", ["Sign in"]),
        ('<p>{% translate "Sign in" %}</p>', []),
        ("{% blocktranslate %}by {{ name }}{% endblocktranslate %}", []),
        ('<a title="Away">{{ name }}</a>', ["Away"]),
        ('<a href="/x" class="btn big"><code>manage.py</code></a>', []),
        ('{% include "a.html" with what="to decide" tone="bad" %}', ["to decide"]),
        ('{% if x == "a b" %}9{% endif %}', []),
    ],
)
def test_the_reader_sees_what_people_see(source: str, found: list[str]) -> None:
    assert list(untranslated(source)) == found


def test_scripts_take_their_words_from_the_page() -> None:
    """A text in quotes or backticks that begins as a sentence does; comments may speak."""
    spoken = re.compile(r"[\"'`](?:\$\{[^}]*\} )?[A-Z]?[a-z]+(?: [a-z]+){2,}")
    for path in files("static/js/*.js"):
        code = re.sub(r"^\s*//.*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert spoken.findall(code) == [], path.name


def test_every_problem_can_be_said_in_another_language() -> None:
    said = {text for cls in CATALOGUE.values() for text in (cls.title, cls.message())}
    assert said <= set(WORDS)
