"""One start of the whole product for models' tools, the MCP server and the examples."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.journeys.people import Billing, Person
from tests.journeys.product import Product
from tests.journeys.wire import Wire, listening


@pytest.fixture(scope="package")
def product() -> Iterator[Product]:
    product = Product()
    try:
        product.start()
        yield product
        assert product.stop() == 0
    finally:
        product.wipe()


@pytest.fixture(scope="package")
def wire(product: Product) -> Iterator[Wire]:
    """Where the app sends its commits: it knows every token."""
    with listening(product.billing_port) as wire:
        product.configure(wire.url)
        yield wire


@pytest.fixture(scope="package")
def billing(product: Product, wire: Wire) -> Iterator[Billing]:
    billing = Billing(product.credentials)
    yield billing
    billing.client.close()


@pytest.fixture(scope="package")
def ada(product: Product, wire: Wire) -> Iterator[Person]:
    ada = Person(product.credentials, "ada")
    yield ada
    ada.browser.close()
