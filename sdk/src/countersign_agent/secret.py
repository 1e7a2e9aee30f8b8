"""A text that shows itself only when it is asked to."""

from __future__ import annotations

import hmac
from typing import NoReturn, final


@final
class Secret:
    """A plan token, an API key, or bytes that hold one.

    Neither `repr`, `str`, formatting nor a debugger's view of variables shows it; it cannot be
    pickled or copied. `reveal()` is for the one line that sends or stores it.
    """

    __slots__ = ("__text",)

    def __init__(self, text: str) -> None:
        self.__text = text

    def reveal(self) -> str:
        """The text itself."""
        return self.__text

    def is_in(self, text: str) -> bool:
        """Whether the secret stands in a text."""
        return self.__text in text

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self.__text.encode(), other.__text.encode())

    __hash__ = None  # type: ignore[assignment]

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a secret is neither pickled nor copied")
