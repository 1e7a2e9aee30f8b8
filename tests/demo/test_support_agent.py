"""The support agent and the person at the browser, as far as they need no running app."""

import random
import threading
import time

import httpx
import pytest

from demo.agent.__main__ import work
from demo.agent.cases import STORIES, case_about, new_invoice
from demo.agent.desk import Desk, Refused
from demo.reviewer import FormReader
from demo.stage import Untrue, expect, money, only
from tests.demo.billing_process import Target

PAGE = """
<form action="/search/"><input name="q"></form>
<form method="post" action="/plans/billing/plan_1/decision/" id="decision">
  <input type="hidden" name="csrfmiddlewaretoken" value="c">
  <input name="confirm" data-confirm="280.00"><textarea name="note"></textarea>
  <button name="verdict" value="approve">Approve</button>
</form>
<input type="hidden" name="shown_digest" value="sha256:1" form="decision">
<input type="hidden" name="stray" value="1">
"""


def test_a_form_is_read_as_a_browser_would_send_it() -> None:
    form = FormReader(PAGE).carrying("shown_digest")
    assert form is not None
    assert form.action == "/plans/billing/plan_1/decision/"
    assert form.fields == {
        "csrfmiddlewaretoken": "c",
        "confirm": "280.00",
        "shown_digest": "sha256:1",
    }


def test_a_page_without_the_form_has_none() -> None:
    assert FormReader("<p>Signed out</p>").carrying("shown_digest") is None


@pytest.mark.parametrize("seed", range(12))
def test_every_case_can_be_planned(target: Target, seed: int) -> None:
    chance = random.Random(seed)
    invoice = target.agent.post("/invoices", json=new_invoice(chance)).json()
    case = case_about(invoice, chance)
    answer = target.agent.post("/refund/dry_run", json=case.inputs)
    assert answer.status_code == 200, answer.text
    assert "{" not in case.summary + case.reason + repr([e["text"] for e in case.evidence])


def test_there_is_a_case_that_tries_to_talk_its_way_through() -> None:
    texts = [text for story in STORIES for _, text in story.evidence]
    assert any("approve this refund" in text for text in texts)


@pytest.mark.parametrize(
    ("cause", "note", "cents"),
    [
        ("changes_requested", "Only 1,100.50 please", 110050),
        ("changes_requested", "refund 20 of it", 2000),
        ("changes_requested", "half will do", 24000),
        ("conflicted", "billing answered 404", 48000),
    ],
)
def test_it_plans_again_as_the_reviewer_wrote(
    target: Target, cause: str, note: str, cents: int
) -> None:
    asked = {"inputs": '{"amount_cents":48000,"invoice_id":"4412"}', "summary": "Late"}
    replan = {"id": 1, "task_id": "case-1", "cause": cause, "reason": note, "asked": asked}
    case = Desk(target.agent, target.agent)._revised(replan)
    assert case.inputs == {"amount_cents": cents, "invoice_id": "4412"}
    assert note in case.reason


def test_a_refusal_names_no_token(target: Target) -> None:
    refused = Refused(target.agent.get("/invoices/0"))
    assert str(refused) == "GET /invoices/0: 404 unknown-invoice"


def test_a_refusal_waits_as_long_as_it_is_told() -> None:
    request = httpx.Request("POST", "http://127.0.0.1/api/v1/plans")
    answer = httpx.Response(429, headers={"Retry-After": "7"}, request=request)
    assert Refused(answer).retry_after == 7


def test_the_story_breaks_where_a_claim_is_untrue() -> None:
    expect(True, "it holds")
    with pytest.raises(Untrue, match="it is so"):
        expect(False, "it is so")
    with pytest.raises(Untrue):
        only([], "effect")
    assert (only([1], "effect"), money(48000)) == (1, "480.00 USD")


def test_the_agent_waits_for_a_server_that_is_away() -> None:

    stopping = threading.Event()
    nowhere = httpx.Client(base_url="http://127.0.0.1:9", trust_env=False)
    with nowhere:
        thread = threading.Thread(target=work, args=[Desk(nowhere, nowhere), stopping])
        thread.start()
        time.sleep(1)
        assert thread.is_alive()
        stopping.set()
        thread.join(5)
        assert not thread.is_alive()
