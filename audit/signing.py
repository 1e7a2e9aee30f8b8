"""The Ed25519 keys of the seals: `AUDIT_SIGNING_KEYS`, the newest first (L-2, SEC-35).

An entry is the URL-safe base64 of a private key's 32 bytes. `public:` and the base64 of a public
key is a retired one: it signs nothing more, and what it signed stays verifiable.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from audit.offline.formats import Keys, key_id

RETIRED: Final = "public:"


@dataclass(frozen=True, slots=True, repr=False)
class Signer:
    """The key that signs now."""

    private: Ed25519PrivateKey

    @property
    def public(self) -> bytes:
        return self.private.public_key().public_bytes_raw()

    @property
    def key_id(self) -> str:
        return key_id(self.public)

    def sign(self, data: bytes) -> str:
        """The signature in hex."""
        return self.private.sign(data).hex()


def signer() -> Signer:
    """The first private key of the ring; ImproperlyConfigured without one."""
    for entry in settings.AUDIT_SIGNING_KEYS:
        if not entry.startswith(RETIRED):
            return Signer(_private(entry))
    raise ImproperlyConfigured("AUDIT_SIGNING_KEYS holds no private key: nothing can be sealed.")


def public_keys() -> dict[str, bytes]:
    """Every public key of the ring by its name, the retired ones too."""
    public = [_public(entry) for entry in settings.AUDIT_SIGNING_KEYS]
    return {key_id(raw): raw for raw in public}


def trusted() -> Keys:
    """What signatures are checked with: the ring, and nothing that the database says."""
    return Keys(public_keys().values())


def new_key() -> str:
    """A fresh private key as an entry of the ring."""
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


def rotated(entries: Iterable[str]) -> list[str]:
    """The ring with a fresh key in front; the others stay, as public keys alone."""
    retired = [RETIRED + base64.urlsafe_b64encode(_public(entry)).decode() for entry in entries]
    return [new_key(), *retired]


def _private(entry: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(_decoded(entry))


def _public(entry: str) -> bytes:
    if entry.startswith(RETIRED):
        return _decoded(entry.removeprefix(RETIRED))
    return _private(entry).public_key().public_bytes_raw()


def _decoded(text: str) -> bytes:
    """32 bytes. The message of the error must not repeat the key."""
    try:
        raw = base64.b64decode(text.translate(str.maketrans("-_", "+/")), validate=True)
    except ValueError:
        raw = b""
    if len(raw) != 32:
        raise ImproperlyConfigured("An entry of AUDIT_SIGNING_KEYS is not a key of 32 bytes.")
    return raw
