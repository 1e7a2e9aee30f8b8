"""The examples as their readers run them: a process, a person's decision, another process."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from countersign_agent.tools.answers import WHAT_NEXT
from demo.credentials import AGENT
from tests.architecture.test_source import ROOT
from tests.journeys.people import Agent as Watcher
from tests.journeys.people import Billing, Person, is_
from tests.journeys.product import PATIENCE, Product
from tests.journeys.wire import Wire

EXAMPLES = ROOT / "sdk" / "examples"
OFFLINE = Path(__file__).parent / "offline"
NAMES = sorted(path.stem for path in EXAMPLES.glob("with_*.py"))
of_each = pytest.mark.parametrize("name", NAMES)


def run(name: str, folder: Path, invoice: str, product: Product) -> str:
    """One run to its end; what it printed."""
    environment = product.environment | {
        "COUNTERSIGN_URL": product.credentials.base_url,
        "COUNTERSIGN_API_KEY": product.credentials.raw["agents"][AGENT]["api_key"],
        "PYTHONPATH": f"{OFFLINE}:{ROOT / 'sdk' / 'src'}",
    }
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), str(folder), invoice],
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert "the network was asked" not in done.stderr, done.stderr
    return done.stdout + done.stderr


def waiting(name: str, folder: Path, invoice: str, product: Product, watcher: Watcher) -> str:
    """Run it until its plan is before people; the plan's ID."""
    said = run(name, folder, invoice, product)
    assert "waits for a person" in said
    (plan_id,) = set(re.findall(r"/plans/billing/([^/\s]+)/", said))
    watcher.wait({"plan_id": plan_id}, is_("pending"))
    return str(plan_id)


@pytest.fixture
def watcher(product: Product, wire: Wire) -> Iterator[Watcher]:
    watcher = Watcher(product.credentials)
    yield watcher
    watcher.close()


def test_there_is_one_for_each_library() -> None:
    assert NAMES == ["with_langgraph", "with_openai_agents", "with_pydantic_ai"]
    for name in NAMES:
        assert f"{name}.py" in (EXAMPLES / "README.md").read_text()


def test_nothing_but_this_machine_can_be_reached() -> None:
    ask = "import socket; socket.create_connection(('provider.example', 443))"
    done = subprocess.run(
        [sys.executable, "-c", ask],
        env={"PYTHONPATH": str(OFFLINE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "the network was asked for 'provider.example'" in done.stderr


@of_each
def test_it_goes_on_in_another_process_once_a_person_approved(
    name: str,
    tmp_path: Path,
    product: Product,
    wire: Wire,
    watcher: Watcher,
    billing: Billing,
    ada: Person,
) -> None:
    invoice = billing.new_invoice()
    plan_id = waiting(name, tmp_path, invoice, product, watcher)
    assert "waits for a person" in run(name, tmp_path, invoice, product)
    assert billing.effects(invoice) == []
    ada.approve_now({"plan_id": plan_id})
    watcher.wait({"plan_id": plan_id}, is_("committed"))
    said = run(name, tmp_path, invoice, product)
    assert "The refund is committed" in said
    (effect,) = billing.effects(invoice)
    assert effect["amount_cents"] == 1500
    (commit,) = wire.commits(effect["idempotency_key"])
    left = "".join(path.read_text(errors="replace") for path in tmp_path.iterdir())
    assert commit.members["plan_token"] not in said + left


@of_each
def test_it_hears_of_a_rejection_and_what_next_when_it_is_run_once_more(
    name: str,
    tmp_path: Path,
    product: Product,
    watcher: Watcher,
    billing: Billing,
    ada: Person,
) -> None:
    invoice = billing.new_invoice()
    plan_id = waiting(name, tmp_path, invoice, product, watcher)
    ada.decide({"plan_id": plan_id}, "reject", "It was replaced already.")
    assert "The refund is rejected" in run(name, tmp_path, invoice, product)
    for _ in range(2):
        said = run(name, tmp_path, invoice, product)
        # Where the library asks twice, the second time finds the first plan by the events.
        assert re.search("^The refund is (refused|rejected): ", said, re.MULTILINE)
        assert WHAT_NEXT["stop"] in said
    assert billing.effects(invoice) == []
