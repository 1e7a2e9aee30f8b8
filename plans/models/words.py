"""Search by words, each from its beginning: what PostgreSQL answers without any extension.

Punctuation is a gap between words, so that `invoice/4412` is found by `4412`. Of plans that are
over an index knows the words, by `plans_words`, a function of the database that reads the first
100,000 characters of a text; the few that are still to come are looked through.
"""

from __future__ import annotations

import string
from typing import Any, Final

from django.contrib.postgres.search import SearchVectorField
from django.db.models import BooleanField, Expression, F, Func, TextField
from django.db.models.functions import Cast

MOST_WORDS: Final = 12
_GAPS: Final = str.maketrans(dict.fromkeys(f"{string.punctuation}“”„‘’…–—", " "))  # noqa: RUF001


class Text(Func):
    """Texts in a row. No parameters: it must be the very expression of the index."""

    template = "(%(expressions)s)"
    arg_joiner = " || ' ' || "
    output_field = TextField()


class Words(Func):
    """The words of a text."""

    function = "plans_words"
    output_field = SearchVectorField()


class OrEmpty(Func):
    """A text that a joined row may lack."""

    template = "coalesce(%(expressions)s, '')"
    output_field = TextField()


class Say(Func):
    """Whether words match one of `searches_of`."""

    template = "(%(expressions)s))"
    arg_joiner = " @@ to_tsquery('simple', "
    output_field = BooleanField()


class Reads(Func):
    """Whether a text matches one of `patterns_of`."""

    template = "(%(expressions)s)"
    arg_joiner = " ~* "
    output_field = BooleanField()


class IsOneOf(Func):
    """Whether a value is in an array."""

    template = "(%(expressions)s))"
    arg_joiner = " = ANY("
    output_field = BooleanField()


def text_of_plan() -> Text:
    """Its ID, sentence, task, the agent's texts, and objects, fields and values."""
    names = ("plan_id", "title", "task_id", "summary", "reason")
    return Text(*map(F, names), Cast("actions", TextField()))


def text_of(*texts: str, actions: str) -> Text:
    """The same of rows that are joined, any of which may be missing."""
    parts: list[Expression | Any] = [OrEmpty(F(name)) for name in texts]
    return Text(*parts, OrEmpty(Cast(actions, TextField())))


def split(text: str) -> list[str]:
    """The words of a text, in small letters."""
    return text.translate(_GAPS).lower().split()


def searches_of(text: str) -> list[str]:
    """For each word that somebody typed a query for the index; those beyond the most are lost."""
    return [f"'{word}':*" for word in split(text)[:MOST_WORDS]]


def patterns_of(text: str) -> list[str]:
    """The same as regular expressions."""
    return [f"(^|[^[:alnum:]]){word}" for word in split(text)[:MOST_WORDS]]
