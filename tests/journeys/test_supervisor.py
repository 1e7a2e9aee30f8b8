"""The supervisor ends: with a crash, or by Ctrl-C and on again; nothing is left behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest

from tests.journeys.people import Agent, Billing, Person, is_
from tests.journeys.product import CHILDREN, Product, eventually


@pytest.fixture
def another() -> Iterator[Product]:
    """A product that is stopped and started, apart from the one of all other journeys."""
    product = Product()
    try:
        yield product
    finally:
        if product.running:
            product.stop()
        product.wipe()


def test_a_crash_of_the_supervisor_leaves_no_child(another: Product) -> None:
    another.start()
    children = {another.pid(name) for name in CHILDREN}
    assert children <= set(another.processes())
    another.crash()
    assert eventually(lambda: not children & set(another.processes()))


def test_it_continues_where_it_stopped_and_ctrl_c_leaves_nothing_behind(another: Product) -> None:
    product = another
    product.start()
    with closing(Agent(product.credentials)) as agent:
        billing = Billing(product.credentials)
        with closing(billing.client):
            plan = agent.pending(billing.new_invoice())
        assert product.stop() == 0
        product.start()
        assert len(product.processes()) > len(CHILDREN)
        ada = Person(product.credentials, "ada")
        with closing(ada.browser):
            ada.approve_now(plan)
        agent.wait(plan, is_("committed"))
    assert product.stop() == 0
    assert product.processes() == {}
    assert list((product.home / "pids").iterdir()) == []
    for port in (product.port, product.billing_port):
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"http://127.0.0.1:{port}/health/live", trust_env=False)
