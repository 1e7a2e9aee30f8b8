"""One start of the whole product for all journeys of a test session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.journeys.logs import leaking
from tests.journeys.people import Agent, Billing, Person
from tests.journeys.product import Product
from tests.journeys.wire import Wire, listening


@pytest.fixture(scope="package")
def product() -> Iterator[Product]:
    """Everything runs; at the end Ctrl-C ends all of it."""
    product = Product()
    try:
        product.start()
        yield product
        assert product.stop() == 0
        assert product.processes() == {}
    finally:
        product.wipe()


@pytest.fixture(scope="package")
def wire(product: Product) -> Iterator[Wire]:
    """Where the app sends its calls to billing; configured once, before any plan.

    When all journeys of a worker are over, whatever their order was, no log may hold a token.
    """
    with listening(product.billing_port) as wire:
        product.configure(wire.url)
        yield wire
        assert leaking(product, wire) == []


@pytest.fixture(scope="package")
def agent(product: Product, wire: Wire) -> Iterator[Agent]:
    """The support agent."""
    agent = Agent(product.credentials)
    yield agent
    agent.close()


@pytest.fixture(scope="package")
def billing(product: Product, wire: Wire) -> Iterator[Billing]:
    """The target, as the one who knows what really happened."""
    billing = Billing(product.credentials)
    yield billing
    billing.client.close()


@pytest.fixture(scope="package")
def ada(product: Product, wire: Wire) -> Iterator[Person]:
    """Reviews."""
    ada = Person(product.credentials, "ada")
    yield ada
    ada.browser.close()


@pytest.fixture(scope="package")
def mona(product: Product, wire: Wire) -> Iterator[Person]:
    """Audits."""
    mona = Person(product.credentials, "mona")
    yield mona
    mona.browser.close()
