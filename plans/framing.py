"""One request as bytes: what we send, and what nobody may make us send (SEC-17, SEC-19)."""

from __future__ import annotations

import re

from plans.addresses import Origin
from plans.exchanges import Call, Endpoint

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_VALUE = re.compile(r"[\x20-\x7e]*", re.ASCII)
_PATH = re.compile(r"/(?!/)[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*", re.ASCII)
_METHOD = re.compile(r"[A-Z]{1,16}", re.ASCII)

# Set here and nowhere else: framing, identity and decompression are not the caller's.
OURS = frozenset(
    {
        "accept-encoding",
        "authorization",
        "connection",
        "content-length",
        "cookie",
        "expect",
        "host",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


def is_path(text: str) -> bool:
    """Whether `text` is a path, perhaps with a query, that cannot be read as anything else."""
    return _PATH.fullmatch(text) is not None


class Unsendable(ValueError):
    """The request itself is wrong; nothing was opened. Names no value, for one may be a secret."""


def render(origin: Origin, endpoint: Endpoint, call: Call) -> bytes:
    """Return head and body in one piece, so that they leave in one segment where they fit.

    Raises `Unsendable` for a method, path or header that could be read as two.
    """
    if not _METHOD.fullmatch(call.method) or not is_path(call.path):
        raise Unsendable("the method or path is not one we send")
    headers = {
        "host": origin.authority,
        "user-agent": "Countersign",
        "accept": "application/json, application/problem+json",
        **({} if call.body is None else {"content-type": "application/json"}),
        **_callers_headers(call),
        "accept-encoding": "identity",
        "connection": "close",
        **_credential(endpoint),
    }
    if call.body is not None:
        headers["content-length"] = str(len(call.body))
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
            raise Unsendable(f"the header {name!a} holds what no header may carry")
    lines = [f"{call.method} {origin.prefix}{call.path} HTTP/1.1"]
    lines += [f"{name.title()}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + (call.body or b"")


def _callers_headers(call: Call) -> dict[str, str]:
    headers = {name.lower(): value for name, value in call.headers.items()}
    if taken := headers.keys() & OURS:
        raise Unsendable(f"the caller may not set {', '.join(sorted(taken))}")
    return headers


def _credential(endpoint: Endpoint) -> dict[str, str]:
    secret = endpoint.credential
    if secret is None:
        return {}
    return {"authorization": f"Bearer {secret if isinstance(secret, str) else secret.reveal()}"}
