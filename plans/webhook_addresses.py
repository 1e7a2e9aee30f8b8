"""Where a webhook may lead: the address rules of targets, and a path with its query (SEC-15)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

from plans.addresses import (
    AddressRefused,
    Origin,
    ResolutionFailed,
    check_origin,
    resolve_checked,
)
from plans.framing import is_path

LONGEST: Final = 500
LOOKUP_SECONDS: Final = 3.0
_URL: Final = re.compile(r"(?P<origin>[A-Za-z]{1,16}://[^/?]*)(?P<path>/.*)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Address:
    """A checked address in two parts, as the gateway takes it."""

    origin: Origin
    path: str

    @classmethod
    def parse(cls, url: str, *, internal: bool) -> Self:
        """AddressRefused for whatever URL readers disagree about. Pure: nothing is looked up."""
        if len(url) > LONGEST:
            raise AddressRefused("too-long", f"An address has at most {LONGEST} characters.")
        if "#" in url:
            raise AddressRefused("fragment", "An address has no fragment.")
        found = _URL.fullmatch(url)
        if found is None:
            raise AddressRefused("odd-url", "Write it as https://host[:port]/path, in ASCII.")
        origin = check_origin(found["origin"], internal)
        path = found["path"] or "/"
        if not is_path(path) or {".", ".."} & set(path.partition("?")[0].split("/")):
            raise AddressRefused("odd-url", "The path holds what an address cannot hold.")
        return cls(origin, path)

    def look_up(self, *, internal: bool) -> None:
        """Refuse now what every send would refuse. AddressRefused, with every address checked."""
        host, port = self.origin.host, self.origin.port
        try:
            resolve_checked(host, port, internal=internal, timeout=LOOKUP_SECONDS)
        except ResolutionFailed as fault:
            raise AddressRefused("dns", f"{host} cannot be looked up: {fault}.") from fault

    def __str__(self) -> str:
        return f"{self.origin}{self.path}"
