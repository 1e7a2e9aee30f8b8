"""The file of an ETag target, as the process needs it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from countersign_target.ready.etag.difference import is_below, steps
from countersign_target.ready.inputs import VISIBLE, Inputs, named, read_inputs
from countersign_target.ready.service import Service, read_service
from countersign_target.ready.settings import Table, read

PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
PATH: Final = re.compile(r"(?:/[A-Za-z0-9._~!$&'()*+,;=:@{}-]+)+/?", re.ASCII)
HEADER: Final = re.compile(r"[A-Za-z0-9-]{1,64}", re.ASCII)
# Every one of these is the adapter's own business.
RESERVED: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "authorization",
        "connection",
        "content-length",
        "content-type",
        "host",
        "if-match",
        "transfer-encoding",
    }
)


class SettleBy(StrEnum):
    """What proves that a write without an answer was carried out."""

    IDEMPOTENCY_KEY = "idempotency_key"
    MARKER = "marker"
    STATE = "state"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """Where the API is, how it is spoken to, and what proves what there. Seconds."""

    scheme: str
    host: str
    port: int
    base_path: str
    headers: Mapping[str, str] = field(repr=False)
    connect_timeout: float
    read_timeout: float
    total_timeout: float
    settle_by: SettleBy
    marker: str
    idempotency_header: str


@dataclass(frozen=True, slots=True)
class Wish:
    """What a field is set to: an input, a constant, or the field's number plus an input."""

    path: str
    input: str = ""
    value: Any = None
    add: bool = False
    at_most: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """One operation: which object, which fields, by which request."""

    name: str
    object: str
    path: str
    method: str
    inputs: Inputs
    wishes: tuple[Wish, ...]
    ignored: tuple[str, ...]
    read_only: tuple[str, ...]

    def address(self, inputs: Mapping[str, Any]) -> str:
        """The path of the object; ValueError when an input would lead elsewhere."""
        return filled(self.path, inputs, partial(quote, safe=""))

    def names(self, inputs: Mapping[str, Any]) -> str:
        """The object as people read it: `customer/77`."""
        return filled(self.object, inputs, named)


@dataclass(frozen=True, slots=True)
class EtagSettings:
    """The whole file."""

    service: Service
    store: str
    api: ApiSettings
    changes: tuple[Change, ...]


def filled(template: str, inputs: Mapping[str, Any], encode: Callable[[str], str]) -> str:
    """The template with its placeholders replaced, each of them encoded."""

    def put(match: re.Match[str]) -> str:
        return encode(str(inputs[match[1]]))

    text = PLACEHOLDER.sub(put, template)
    # "." and ".." survive percent-encoding, and mean another place.
    if any(step in {"", ".", ".."} for step in text.strip("/").split("/")):
        raise ValueError("an input leaves the path")
    return text


def read_settings(path: Path) -> EtagSettings:
    """Read the file; ConfigurationError names what is wrong with it."""
    file = read(path)
    service = read_service(file.table("server"))
    store = file.table("store").text("path")
    api = _api(file.table("api"))
    changes = tuple(_change(table, api) for table in file.tables("operations"))
    file.done()
    names = [change.name for change in changes]
    if not names or len(set(names)) != len(names):
        raise file.wrong("operations", "must be there, each with a name of its own")
    return EtagSettings(service, store, api, changes)


def _api(table: Table) -> ApiSettings:
    address = urlsplit(table.text("base_url"))
    plain = not (address.username or address.password or address.query or address.fragment)
    if address.scheme not in {"http", "https"} or not address.hostname or not plain:
        raise table.wrong("base_url", "must be http://host or https://host, with a path at most")
    if address.path.strip("/") and not PATH.fullmatch(address.path):
        raise table.wrong("base_url", "has a path with characters that belong percent-encoded")
    settle_by = SettleBy(table.one_of("settle_by", tuple(SettleBy)))
    return ApiSettings(
        scheme=address.scheme,
        host=address.hostname,
        port=address.port or (443 if address.scheme == "https" else 80),
        base_path=address.path.rstrip("/"),
        headers=_headers(table),
        connect_timeout=table.number("connect_timeout_seconds", 3, least=0.1, most=60),
        read_timeout=table.number("read_timeout_seconds", 6, least=0.1, most=300),
        total_timeout=table.number("total_timeout_seconds", 8, least=0.1, most=300),
        settle_by=settle_by,
        marker=_only_for(table, "marker", settle_by is SettleBy.MARKER),
        idempotency_header=_key_header(table, settle_by),
    )


def _headers(table: Table) -> dict[str, str]:
    """The credential and constant headers; what is in them is nowhere shown."""
    found = {}
    extra = table.table("headers", {})
    for name in extra.values:
        if not HEADER.fullmatch(name) or name.lower() in RESERVED:
            raise extra.wrong(name, "is no header that may be set here")
        found[name] = extra.text(name)
    credential = table.secret("credential", "")
    scheme = table.text("credential_scheme", "Bearer")
    header = table.text("credential_header", "Authorization")
    if credential:
        found[header] = f"{scheme} {credential}" if header == "Authorization" else credential
    for name, value in found.items():
        if not value.isascii() or not value.isprintable():
            raise table.wrong("headers", f"{name} holds characters that no header may have")
    return found


def _only_for(table: Table, key: str, wanted: bool) -> str:
    """A key that one way of settling needs, and the others refuse."""
    if wanted:
        return table.text(key)
    if key in table.values:
        raise table.wrong(key, "is for another settle_by")
    return ""


def _key_header(table: Table, settle_by: SettleBy) -> str:
    name = table.text("idempotency_header", "Idempotency-Key")
    if "idempotency_header" in table.values and settle_by is not SettleBy.IDEMPOTENCY_KEY:
        raise table.wrong("idempotency_header", "is for settle_by = idempotency_key")
    if not HEADER.fullmatch(name) or name.lower() in RESERVED:
        raise table.wrong("idempotency_header", "is no header that may be set here")
    return name


def _change(table: Table, api: ApiSettings) -> Change:
    inputs = read_inputs(table.table("inputs"))
    change = Change(
        name=table.text("name"),
        object=_template(table, "object", inputs),
        path=_template(table, "path", inputs),
        method=table.one_of("method", ("PATCH", "PUT"), "PATCH"),
        inputs=inputs,
        wishes=_wishes(table.table("set"), inputs),
        ignored=table.texts("ignore", []),
        read_only=table.texts("read_only", []),
    )
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,62}", change.name):
        raise table.wrong("name", "is lower-case letters, digits and _")
    if not VISIBLE.fullmatch(change.object):
        raise table.wrong("object", "is visible ASCII without spaces")
    if not PATH.fullmatch(change.path):
        raise table.wrong("path", "must be a path like /customers/{customer_id}")
    if change.read_only and change.method != "PUT":
        raise table.wrong("read_only", "is for PUT: a PATCH sends what it sets, and nothing else")
    _no_overlap(table, [wish.path for wish in change.wishes] + [api.marker] * bool(api.marker))
    return change


def _template(table: Table, key: str, inputs: Inputs) -> str:
    template = table.text(key)
    for name in PLACEHOLDER.findall(template):
        if name not in inputs.declared or inputs.declared[name].optional:
            raise table.wrong(key, f"{{{name}}} must be an input that is not optional")
        if inputs.declared[name].kind not in {"string", "integer"}:
            raise table.wrong(key, f"{{{name}}} must be a string or an integer")
    if "{" in PLACEHOLDER.sub("", template) or "}" in PLACEHOLDER.sub("", template):
        raise table.wrong(key, "has a brace without its partner")
    return template


def _wishes(table: Table, inputs: Inputs) -> tuple[Wish, ...]:
    found = tuple(_wish(path, each, inputs) for path, each in table.named_tables().items())
    if not found:
        raise table.wrong("", "sets no field")
    return found


def _wish(path: str, table: Table, inputs: Inputs) -> Wish:
    name = table.text("input", "")
    wish = Wish(
        path=path,
        input=name,
        value=table.value("value", (str, int, float, bool, list, dict), None),
        add=table.flag("add"),
        at_most=table.text("at_most", ""),
    )
    removes = table.flag("remove")
    if bool(name) + ("value" in table.values) + removes != 1:
        raise table.wrong("input", "say one of input, value and remove = true")
    if name and name not in inputs.declared:
        raise table.wrong("input", f"{name} is not declared")
    if (wish.add or wish.at_most) and not (name and inputs.declared[name].kind == "integer"):
        raise table.wrong("add", "add and at_most need an input that is an integer")
    return wish


def _no_overlap(table: Table, paths: list[str]) -> None:
    if any("" in steps(path) or not VISIBLE.fullmatch(path) for path in paths):
        raise table.wrong("set", "a path is member names in visible ASCII joined by /, no first /")
    for one, other in itertools.permutations(paths, 2):
        if is_below(one, [other]):
            raise table.wrong("set", f"{one} lies in {other}: set one of them")
