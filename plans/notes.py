"""What a person may write beside a decision, a finding or an end (BI-46)."""

from typing import Final

MAX_NOTE: Final = 4_000


def is_unfit(note: str) -> bool:
    """Too long (characters), or with a NUL that PostgreSQL cannot hold: InvalidNote, 422."""
    return len(note) > MAX_NOTE or "\x00" in note
