"""Notices as a table of the configuration file (7-interfaces)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from django.contrib.auth.models import Group

from approvals.notices import channels
from approvals.notices.rows import Channel
from plans import receivers, webhook_messages
from plans.configuration import values
from plans.configuration.changes import Change, KeyChange
from plans.configuration.entries import Entry
from plans.configuration.kinds import Kind
from plans.configuration.refusals import Refused
from plans.custody import Secret
from plans.problem import Problem

_GROUP: Final = values.words(150)
_SHORTEST_KEY: Final = 24


def group_name(value: Any, folder: Path) -> str:
    (name,) = _GROUP([value], folder)
    return str(name)


def address(value: Any, folder: Path) -> Secret:
    """A webhook's address, or where it stands: many hold a key. Empty: the webhook is off."""
    if isinstance(value, str) and (not value or value.lower().startswith(("https://", "http://"))):
        return Secret(value)
    return values.secret_text(value, folder)


def secret(value: Any, folder: Path) -> Secret:
    """A Standard Webhooks secret from its source: `whsec_` and at least 24 bytes in base64."""
    found = values.secret_text(value, folder)
    try:
        raw = base64.b64decode(found.reveal().removeprefix(webhook_messages.PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    prefixed = found.reveal().startswith(webhook_messages.PREFIX)
    if not prefixed or not _SHORTEST_KEY <= len(raw) <= 64:
        raise ValueError("names a text that is not whsec_ and 24 to 64 bytes in base64")
    return found


NOTICES: Final = Kind(
    table="notices",
    noun="notices",
    named_by="group",
    keys={
        "group": group_name,
        "mail": values.boolean,
        "webhook": address,
        "internal": values.boolean,
        "secret": secret,
    },
)


def apply_notices(entries: Iterable[Entry], refused: Refused) -> Iterator[Change]:
    """Switch each group's channels; a group that nobody made is refused, it may be a slip."""
    for entry in entries:
        group = Group.objects.select_for_update().filter(name=entry.name).first()
        if group is None:
            refused.add(entry, "there is no such group")
            continue
        keys: list[KeyChange] = []
        if "mail" in entry.values:
            keys += channels.switched(group, Channel.Kind.MAIL, entry.values["mail"])
        with refused.at(entry):
            keys += _webhook(group, entry.values)
        if keys:
            yield Change(channels.NOUN, group.name, False, tuple(keys))


def _webhook(group: Group, wanted: dict[str, Any]) -> list[KeyChange]:
    if "webhook" not in wanted:
        for key in ("internal", "secret"):
            if key in wanted:
                raise ValueError(f"{key} stands beside a webhook, and there is none")
        return []
    url = wanted["webhook"].reveal()
    if not url:
        return channels.switched(group, Channel.Kind.WEBHOOK, False)
    internal = wanted.get("internal", False)
    try:
        found = receivers.checked(url, internal)
    except Problem as problem:
        raise ValueError(f"webhook: {problem.detail}") from None
    keys, _ = channels.named(group, found, internal=internal, secret=wanted.get("secret"))
    return keys or channels.switched(group, Channel.Kind.WEBHOOK, True)
