"""Search by words, each from its beginning: what PostgreSQL indexes without any extension.

`plans_words` (a function of the database) takes punctuation as a gap between words, so that
`invoice/4412` is found by `4412`; of a longer text it reads the first 100,000 characters.
"""

from __future__ import annotations

import string
from typing import Any, Final

from django.contrib.postgres.search import SearchVectorField
from django.db.models import BooleanField, Expression, F, Func, TextField
from django.db.models.functions import Cast

# As in `plans_words`; the percent sign is a gap to PostgreSQL anyway.
_GAPS: Final = str.maketrans(dict.fromkeys(f"{string.punctuation}“”„‘’«»…–—·→", " "))  # noqa: RUF001
MOST_WORDS: Final = 6


class Words(Func):
    """The words of these texts. No parameters: it must be the very expression of the index."""

    function = "plans_words"
    arg_joiner = " || ' ' || "
    output_field = SearchVectorField()


class OrEmpty(Func):
    """A text that a joined row may lack."""

    template = "coalesce(%(expressions)s, '')"
    output_field = TextField()


class Say(Func):
    """Whether words match a search made by `search_of`."""

    template = "(%(expressions)s))"
    arg_joiner = " @@ to_tsquery('simple', "
    output_field = BooleanField()


class IsOneOf(Func):
    """Whether a value is in an array."""

    template = "(%(expressions)s))"
    arg_joiner = " = ANY("
    output_field = BooleanField()


def words_of_plan() -> Words:
    """Its ID, sentence, task, the agent's texts, and objects, fields and values."""
    names = ("plan_id", "title", "task_id", "summary", "reason")
    return Words(*map(F, names), Cast("actions", TextField()))


def words_of(*texts: str, actions: str) -> Words:
    """The same of rows that are joined, any of which may be missing."""
    parts: list[Expression | Any] = [OrEmpty(F(name)) for name in texts]
    return Words(*parts, OrEmpty(Cast(actions, TextField())))


def split(text: str) -> list[str]:
    """The words of a text that somebody typed, in small letters."""
    return text.translate(_GAPS).lower().split()


def searches_of(text: str) -> list[str]:
    """One search for each word; those beyond the most are in the last one; empty: no word."""
    words = split(text)
    first, last = words[: MOST_WORDS - 1], words[MOST_WORDS - 1 :]
    return [search_of(word) for word in first] + ([search_of(*last)] if last else [])


def search_of(*words: str) -> str:
    """All of the words, each from its beginning, for to_tsquery."""
    return " & ".join(f"'{word}':*" for word in words)
