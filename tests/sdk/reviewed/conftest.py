"""One start of the whole product, the people at their browsers, and the program of each test."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from demo.credentials import TARGET
from tests.journeys.people import Billing, Person
from tests.journeys.product import Product
from tests.sdk.overhearing import Ear
from tests.sdk.reviewed.program import Reviewed

# The same billing, where re-plans are the agent's.
DESK = """
[[targets]]
name = "desk"
base_url = "{url}"
internal = true
credential = "env:BILLING_TOKEN"
plan_path = "/plans/{{plan_id}}"
min_window_seconds = 3
total_timeout_seconds = 6
reviewers = ["reviewers"]

[[targets.operations]]
name = "refund"
title = "Refund on {{object}}"
dry_run_path = "/refund/dry_run"
commit_path = "/refund/commit"
replan = "agent"
risk = "low"
"""


def add_desk(product: Product) -> None:
    file = product.home / "desk.toml"
    file.write_text(DESK.format(url=product.credentials.billing_url))
    token = product.credentials.raw["targets"][TARGET]["token"]
    product.manage("apply_config", str(file), BILLING_TOKEN=token)


@pytest.fixture(scope="package")
def product() -> Iterator[Product]:
    product = Product()
    try:
        product.start()
        product.configure(product.credentials.billing_url)
        add_desk(product)
        yield product
        assert product.stop() == 0
    finally:
        product.wipe()


@pytest.fixture(scope="package")
def ada(product: Product) -> Iterator[Person]:
    ada = Person(product.credentials, "ada")
    yield ada
    ada.browser.close()


@pytest.fixture(scope="package")
def billing(product: Product) -> Iterator[Billing]:
    billing = Billing(product.credentials)
    yield billing
    billing.client.close()


@pytest.fixture
def program(request: pytest.FixtureRequest, ear: Ear, product: Product) -> Iterator[Reviewed]:
    """On the event loop; the flows are the same in threads, where `in_both` tries the shells."""
    with asyncio.Runner() as runner:
        program = Reviewed(getattr(request, "param", "event loop"), ear, product, runner)
        yield program
        for close in program.closing:
            close()
