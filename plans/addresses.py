"""Which origins and addresses this server may call: the SSRF gate (SEC-15, BI-51).

`check_origin` judges the text an operator saves; `resolve_checked` judges every address the name
stands for at the moment of the send, and the gateway connects to exactly those addresses.
"""

from __future__ import annotations

import functools
import queue
import re
import socket
import threading
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

IP = IPv4Address | IPv6Address
SockAddr = tuple[str, int] | tuple[str, int, int, int]

PUBLIC_PORTS = frozenset({443, 8443})
"""Ports of targets on the internet. An internal target may use any."""

ALLOWED_INTERNALLY = frozenset({"loopback", "private", "shared"})
"""What `internal` opens. Link-local stays shut: cloud metadata lives there, targets do not."""

LOOKUPS_AT_ONCE = threading.BoundedSemaphore(32)
"""A dead resolver holds a thread for half a minute; it may hold this many and no more."""

# The IANA special-purpose registries, written out: Python's own `is_private` and `is_link_local`
# changed between versions and miss 100.64.0.0/10, NAT64 and IPv4-mapped addresses.
SPECIAL_V4 = tuple(
    (ip_network(text), kind)
    for text, kind in (
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "reserved"),
        ("192.88.99.0/24", "reserved"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "reserved"),
        ("198.51.100.0/24", "reserved"),
        ("203.0.113.0/24", "reserved"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
)
SPECIAL_V6 = tuple(
    (ip_network(text), kind)
    for text, kind in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("2001:db8::/32", "reserved"),
        ("2001::/23", "reserved"),
        ("3fff::/20", "reserved"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "private"),
        ("ff00::/8", "multicast"),
    )
)
GLOBAL_V6 = ip_network("2000::/3")
NAT64 = ip_network("64:ff9b::/96")
COMPATIBLE = ip_network("::/96")
ISATAP = frozenset({0x00005EFE, 0x02005EFE})


class AddressRefused(ValueError):
    """This server does not call that origin or address; `code` says which rule refused it."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class ResolutionFailed(OSError):
    """The name has no address, or the resolver did not answer in time."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A checked base URL. `str(origin)` is its one normal spelling, the one the digest covers."""

    scheme: str
    host: str
    port: int
    prefix: str

    @property
    def authority(self) -> str:
        """Host and, where it is not the scheme's own, port: the `Host` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        default = {"http": 80, "https": 443}[self.scheme]
        return host if self.port == default else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.prefix}"


# An allow-list for the whole text: what URL libraries disagree about is refused, not repaired.
_BASE_URL = re.compile(
    r"(?P<scheme>[a-z]+)://(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<prefix>(?:/[A-Za-z0-9._~-]+)*)/?",
    re.ASCII,
)
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_FORBIDDEN = (
    ("\\", "backslash"),
    ("@", "userinfo"),
    ("#", "fragment"),
    ("?", "query"),
    ("%", "percent-encoding"),
)


@functools.lru_cache(maxsize=512)
def check_origin(base_url: str, internal: bool) -> Origin:
    """Return the normal form of a target's base URL, or raise `AddressRefused` (SEC-15, BI-51).

    Pure: no lookup happens here, so a name that turns out to be local is caught by
    `resolve_checked` at every send.
    """
    for mark, code in _FORBIDDEN:
        if mark in base_url:
            raise AddressRefused(code, f"A base URL has no {code}.")
    match = _BASE_URL.fullmatch(_lower_authority(base_url))
    if match is None:
        raise AddressRefused("odd-url", "Write it as https://host[:port][/path], in ASCII.")
    scheme, prefix = match["scheme"], match["prefix"]
    if scheme not in ("http", "https"):
        raise AddressRefused("scheme", "Only https (or http to an internal target) is called.")
    if scheme == "http" and not internal:
        raise AddressRefused(
            "https-required", "It needs https, unless it is registered as internal."
        )
    if any(part in (".", "..") for part in prefix.split("/")):
        raise AddressRefused("odd-url", "The path has a dot segment.")
    port = int(match["port"] or (443 if scheme == "https" else 80))
    if not 0 < port < 65536 or (not internal and port not in PUBLIC_PORTS):
        raise AddressRefused("port", f"Port {port} is not on the list {sorted(PUBLIC_PORTS)}.")
    return Origin(scheme, _checked_host(match["host"], internal), port, prefix)


def _lower_authority(base_url: str) -> str:
    """Lower-case everything before the path; scheme and host do not depend on case."""
    scheme, mark, rest = base_url.partition("://")
    authority, slash, path = rest.partition("/")
    return scheme.lower() + mark + authority.lower() + slash + path


def _checked_host(host: str, internal: bool) -> str:
    try:
        literal = ip_address(host.strip("[]"))
    except ValueError:
        return _checked_name(host, internal)
    if (literal.version == 6) != host.startswith("["):
        raise AddressRefused("odd-host", "An IPv6 address stands in brackets, nothing else does.")
    refuse(literal, internal=internal)
    return literal.compressed


def _checked_name(host: str, internal: bool) -> str:
    labels = host.split(".")
    if len(host) > 253 or not all(_NAME.fullmatch(label) for label in labels):
        raise AddressRefused("odd-host", "That is not a host name.")
    if _NUMBER.fullmatch(labels[-1]):
        # 127.1, 2130706433, 0x7f000001, 0: resolvers read these as IPv4 addresses.
        raise AddressRefused("numeric-host", "Write an IPv4 address as four decimal numbers.")
    if labels[-1] == "localhost" and not internal:
        raise AddressRefused("loopback", "localhost is this machine; register it as internal.")
    return host


def resolve_checked(host: str, port: int, *, internal: bool, timeout: float) -> list[SockAddr]:
    """Resolve once, check EVERY address, return them in the resolver's order (SEC-15).

    `timeout` in seconds bounds the lookup. Raises `ResolutionFailed`, or `AddressRefused` if even
    one address is out of bounds: a name that is half local is an attack, not a choice.
    """
    try:
        literal = ip_address(host)
    except ValueError:
        found = _look_up(host, port, timeout)
    else:
        tail = (port,) if literal.version == 4 else (port, 0, 0)
        found = [(literal.compressed, *tail)]
    for address in found:
        refuse(ip_address(address[0].partition("%")[0]), internal=internal)
    return found


def _look_up(host: str, port: int, timeout: float) -> list[SockAddr]:
    """Ask the system's resolver on a thread that may be left behind: it has no time-out itself."""
    slots = LOOKUPS_AT_ONCE
    if not slots.acquire(timeout=max(0.0, timeout)):
        raise ResolutionFailed("too many lookups are waiting for the resolver")
    box: queue.SimpleQueue[list[SockAddr] | OSError] = queue.SimpleQueue()
    threading.Thread(target=_look_up_into, args=(box, slots, host, port), daemon=True).start()
    try:
        found = box.get(timeout=max(0.0, timeout))
    except queue.Empty:
        raise ResolutionFailed("the resolver did not answer in time") from None
    if isinstance(found, OSError):
        raise ResolutionFailed(found.strerror or "the name cannot be resolved") from found
    if not found:
        raise ResolutionFailed("the name has no address")
    return found


def _look_up_into(
    box: queue.SimpleQueue[list[SockAddr] | OSError],
    slots: threading.Semaphore,
    host: str,
    port: int,
) -> None:
    try:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        # A build without IPv6 answers with raw bytes instead of text: such a row is no address.
        box.put([row[4] for row in rows if isinstance(row[4][0], str)])
    except OSError as error:
        box.put(error)
    except UnicodeError:
        box.put(OSError(0, "the name is not a host name"))
    finally:
        slots.release()


def refuse(address: IP, *, internal: bool) -> None:
    """Raise `AddressRefused` if `address`, or one hidden inside it, may not be called."""
    kind = special_kind(address)
    if kind is None or (internal and kind in ALLOWED_INTERNALLY):
        return
    hint = " It has to be registered as internal." if kind in ALLOWED_INTERNALLY else ""
    raise AddressRefused(kind, f"{address} is a {kind} address.{hint}")


def special_kind(address: IP) -> str | None:
    """Name what is special about an address; None for one on the public internet."""
    if isinstance(address, IPv4Address):
        return next((kind for net, kind in SPECIAL_V4 if address in net), None)
    if address.ipv4_mapped is not None:
        return special_kind(address.ipv4_mapped)
    for net, kind in SPECIAL_V6:
        if address in net and kind != "reserved":
            return kind
    for inner in embedded(address):
        if (kind_inside := special_kind(inner)) is not None:
            return kind_inside
    if any(address in net for net, _ in SPECIAL_V6):
        return "reserved"
    return None if address in GLOBAL_V6 or address in NAT64 else "reserved"


def embedded(address: IPv6Address) -> list[IPv4Address]:
    """List the IPv4 addresses that a gateway or tunnel would unwrap from `address`."""
    number = int(address)
    low = IPv4Address(number & 0xFFFFFFFF)
    if address in NAT64 or address in COMPATIBLE:
        return [low]
    if address.sixtofour is not None:
        return [address.sixtofour]
    if address.teredo is not None:
        return list(address.teredo)
    if (number >> 32) & 0xFFFFFFFF in ISATAP:
        return [low]
    return []
