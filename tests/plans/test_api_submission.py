"""Submitting a plan over REST (A-1…A-4)."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from audit.models import Event
from plans.envelopes import PlanOut
from plans.models import Agent, ApiKey, Evidence, Intent, Operation, Plan
from tests.plans.api_calls import INPUTS, TOKEN, Api, dry_run, submission, without

pytestmark = pytest.mark.django_db


def test_it_answers_with_the_plan_its_address_and_its_tag(api: Api) -> None:
    answer = api.post("/plans", submission())
    assert answer.status_code == 201
    members = answer.json()
    PlanOut.model_validate(members)
    assert set(members) == set(PlanOut.model_fields)
    assert members["status"] == "verifying"
    assert members["next_action"] == "wait"
    assert members["revision"] == 1
    assert 0 < members["decide_in_ms"] <= 600_000
    assert answer["Location"] == members["links"]["self"]
    assert answer["Location"].endswith("/api/v1/plans/billing/pl_1")
    again = api.get("/plans/billing/pl_1")
    assert again["ETag"] == answer["ETag"]
    assert again["ETag"].startswith('"')


def test_the_token_is_in_no_answer(api: Api) -> None:
    answers = [api.post("/plans", submission()), api.get("/plans/billing/pl_1"), api.get("/plans")]
    assert not any(TOKEN in answer.content.decode() for answer in answers)


@pytest.mark.fm(46)
def test_the_same_submission_again_answers_with_what_is_here(api: Api) -> None:
    body = submission()
    first = api.post("/plans", body)
    second = api.post("/plans", body)
    assert (first.status_code, second.status_code) == (201, 200)
    assert second["Location"] == first["Location"]
    assert second.json()["plan_id"] == first.json()["plan_id"]
    assert Plan.objects.count() == Intent.objects.count() == 1


@pytest.mark.fm(46)
def test_other_content_under_the_same_plan_id_is_refused(api: Api) -> None:
    body = submission()
    first = api.post("/plans", body)
    answer = api.post("/plans", body | {"reason": "another"})
    assert answer.status_code == 409
    assert answer.json()["code"] == "plan-already-submitted"
    path = answer["Link"].removeprefix("<").removesuffix('>; rel="duplicate"')
    assert first["Location"].endswith(path)
    assert api.get(path.removeprefix("/api/v1")).json()["plan_id"] == first.json()["plan_id"]
    assert Plan.objects.count() == 1


@pytest.mark.fm(46)
def test_another_agents_plan_cannot_be_submitted_again(
    api: Api, dana: User, make_api_key: Callable[..., str]
) -> None:
    body = submission()
    api.post("/plans", body)
    other = Agent.objects.create(name="other-agent", owner=dana, rate_tokens=600)
    answer = Api(make_api_key(other)).post("/plans", body)
    assert (answer.status_code, answer.json()["code"]) == (409, "plan-already-submitted")
    assert "Link" not in answer, "another agent's plan is not there"
    assert Plan.objects.count() == 1


@pytest.mark.parametrize(
    "text",
    [
        INPUTS,
        '{ "invoice_id" : "4412",\n\t"amount_cents" : 48000 }',
        '{"invoice_id":"\\u0034412","amount_cents":48000}',
    ],
)
def test_the_inputs_text_is_kept_byte_for_byte(api: Api, text: str) -> None:
    assert api.post("/plans", submission(inputs=text)).status_code == 201
    plan = Plan.objects.get()
    assert bytes(plan.inputs).decode() == bytes(plan.intent.inputs).decode() == text


def test_an_inputs_object_is_kept_as_its_canonical_text(api: Api) -> None:
    given = {"invoice_id": "4412", "amount_cents": 48000}
    assert api.post("/plans", submission(inputs=given)).status_code == 201
    assert bytes(Plan.objects.get().inputs).decode() == INPUTS


def test_unknown_members_inside_the_plan_are_kept_in_their_order(api: Api) -> None:
    plan = {"zeta": [1, {"b": None, "a": 2.5}], **dry_run(), "alpha": "é"}
    assert api.post("/plans", submission(plan=plan)).status_code == 201
    kept = json.loads(bytes(Plan.objects.get().document))
    assert list(kept.items()) == list(without(plan, "plan_token").items())


def test_evidence_is_stored_as_the_agents_words(api: Api) -> None:
    evidence = [
        {"label": "ticket", "text": "<script>alert(1)</script>"},
        {"label": "log", "url": "https://example.com/1"},
    ]
    assert api.post("/plans", submission(evidence=evidence)).status_code == 201
    stored = Evidence.objects.values_list("label", "text", "url")
    assert list(stored) == [
        ("ticket", "<script>alert(1)</script>", ""),
        ("log", "", "https://example.com/1"),
    ]


def test_the_agents_own_idempotency_key_is_used(api: Api) -> None:
    key = f"refund-{uuid.uuid4()}"
    answer = api.post("/plans", submission(idempotency_key=key))
    assert answer.json()["commit"]["idempotency_key"] == key


def test_a_taken_idempotency_key_is_refused(api: Api) -> None:
    api.post("/plans", submission("pl_1", idempotency_key="refund-4412"))
    answer = api.post("/plans", submission("pl_2", idempotency_key="refund-4412"))
    assert answer.status_code == 409
    assert answer.json()["code"] == "idempotency-key-taken"
    assert Plan.objects.count() == 1


def test_events_carry_the_request_id_and_the_address(api: Api) -> None:
    answer = api.post("/plans", submission(), X_Request_Id="run-4412-0001")
    assert answer["X-Request-Id"] == "run-4412-0001"
    event = Event.objects.get(action="plan.submitted")
    assert (event.request_id, event.ip) == ("run-4412-0001", "127.0.0.1")


def test_a_key_without_the_scope_submits_nothing(
    support_agent: Agent, refund: Operation, make_api_key: Callable[..., str]
) -> None:
    answer = Api(make_api_key(support_agent, "plans:read")).post("/plans", submission())
    assert answer.status_code == 403
    assert answer.json()["code"] == "missing-scope"
    assert Plan.objects.count() == 0


def test_the_use_of_a_key_is_noted_once_a_minute(api: Api) -> None:
    api.get("/plans")
    first = ApiKey.objects.get().last_used_at
    api.get("/plans")
    assert first is not None
    assert ApiKey.objects.get().last_used_at == first


def test_the_plan_is_kept_as_it_was_written_without_its_token(api: Api) -> None:
    written = json.dumps(submission())
    odd = written.replace('"plan": {', '"plan": {"weight": 1.50, "ratio":1e2, ', 1)
    assert api.post("/plans", odd).status_code == 201
    kept = bytes(Plan.objects.get().document).decode()
    assert kept.startswith('{"weight":1.50,"ratio":1e2,')
    assert TOKEN not in kept
