"""What the processes of the product have written down, and that no plan token is in it."""

from __future__ import annotations

from tests.journeys.product import CHILDREN, Product
from tests.journeys.wire import Wire


def leaking(product: Product, wire: Wire) -> list[str]:
    """The logs that hold a token of any commit until now; a failure does not show the token."""
    tokens = [sent.members["plan_token"] for sent in list(wire.sent) if sent.is_commit]
    logs = {path.name: path.read_text() for path in (product.home / "logs").iterdir()}
    assert len(logs) == len(CHILDREN)
    return [name for name, text in logs.items() if any(token in text for token in tokens)]
