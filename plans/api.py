"""The REST interface of agents: plans and intents (A-1…A-8, A-12)."""

from typing import Any, Final, Literal, cast

from django.http import HttpRequest, HttpResponse
from ninja import Router
from ninja.security import HttpBearer

from audit import actors
from plans import listing
from plans.changes import SCOPE_KEY, Wait, intent_key
from plans.edge import wait_seconds
from plans.envelopes import AbandonmentOut, IntentOut, PlanOut, PlanPage, ProblemOut
from plans.intents import IntentRequest, open_intent
from plans.keys import Caller, Scope, authenticate
from plans.models import Intent
from plans.replies import json_reply, tagged_reply
from plans.representation import Members, entity_tag, represent, represent_intent
from plans.schemas import AbandonmentIn, EvidenceIn, IntentIn, SubmissionIn
from plans.submission import EvidenceItem, Submission, abandon, submit

router = Router()

# Every refusal has the same form, whatever its status.
REFUSALS: Final = frozenset({400, 401, 403, 404, 409, 413, 415, 422, 429, 503})
READ_REFUSALS: Final = frozenset({401, 403, 404, 422, 503})


class ApiRequest(HttpRequest):
    """A request whose key was good."""

    auth: Caller


class ApiKey(HttpBearer):
    """`Authorization: Bearer cs_<id>_<secret>`, with one scope."""

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self.scope = scope

    def __call__(self, request: HttpRequest) -> Caller:
        caller = authenticate(request.headers.get("Authorization", ""))
        caller.demand(self.scope)
        return caller

    def authenticate(self, request: HttpRequest, token: str) -> Caller:
        return authenticate(f"Bearer {token}")


MAY_WRITE: Final = ApiKey("plans:write")
MAY_READ: Final = ApiKey("plans:read")


def _parameter(name: str, where: Literal["query", "header"], about: str, **schema: Any) -> Members:
    return {
        "in": where,
        "name": name,
        "required": False,
        "description": about,
        "schema": {"type": "string", **schema},
    }


WAITING: Final = {
    "parameters": [
        _parameter("If-None-Match", "header", "The ETag you have; 304 when it is still the one."),
        _parameter("Prefer", "header", "wait=N: hold the 304 back for up to N ≤ 30 seconds."),
    ],
    "responses": {304: {"description": "Not modified"}},
}
FILTERS: Final = {
    "parameters": [
        _parameter("status", "query", "Only plans in this status."),
        _parameter("task_id", "query", "Only plans of this task."),
        _parameter("intent_id", "query", "Only plans of this intent.", format="uuid"),
        _parameter("cursor", "query", "`next` of the page before."),
        _parameter("limit", "query", "1 to 200.", type="integer", minimum=1, maximum=200),
    ],
}


@router.post(
    "/plans",
    auth=MAY_WRITE,
    response={201: PlanOut, 200: PlanOut, REFUSALS: ProblemOut},
    summary="Submit a plan",
)
def submit_plan(request: ApiRequest, body: SubmissionIn) -> HttpResponse:
    """Hold a dry-run response for review. The same plan again answers 200 with what is here."""
    agent = request.auth.agent
    submission = Submission(
        **_wish(body),
        plan=body.received_plan,
        evidence=[_evidence(item) for item in body.evidence or ()],
        replaces=body.replaces,
        replan_id=body.replan_id,
        idempotency_key=body.idempotency_key,
    )
    plan, created = submit(agent, submission)
    plan = listing.own_plan(agent, plan.target.name, plan.plan_id)
    members = represent([plan], listing.read_at(plan))[0]
    headers = {"ETag": entity_tag(members), "Location": members["links"]["self"]}
    return json_reply(members, 201 if created else 200, headers)


@router.get(
    "/plans",
    auth=MAY_READ,
    response={200: PlanPage, READ_REFUSALS: ProblemOut},
    summary="List plans",
    openapi_extra=FILTERS,
)
def list_plans(request: ApiRequest) -> HttpResponse:
    """Your own plans, newest first."""
    page = listing.page_of(request.auth.agent, dict(request.GET.lists()))
    items = represent(page.plans, listing.read_at(page.plans[0])) if page.plans else []
    return json_reply({"items": items, "next": page.next})


@router.get(
    "/plans/{target}/{plan_id}",
    auth=MAY_READ,
    response={200: PlanOut, READ_REFUSALS: ProblemOut},
    summary="Read a plan",
    openapi_extra=WAITING,
)
def read_plan(request: ApiRequest, target: str, plan_id: str) -> HttpResponse:
    """The plan in whatever status; with an ETag and `Prefer: wait=N` it waits for a change."""
    plan = listing.own_plan(request.auth.agent, target, plan_id)
    members = represent([plan], listing.read_at(plan))[0]
    _offer_to_wait(request, plan.intent_id)
    return tagged_reply(request, members, entity_tag(members))


@router.post(
    "/plans/{target}/{plan_id}/abandonment",
    auth=MAY_WRITE,
    response={200: AbandonmentOut, 202: AbandonmentOut, REFUSALS: ProblemOut},
    summary="Abandon a plan's intent",
)
def abandon_plan(
    request: ApiRequest, target: str, plan_id: str, body: AbandonmentIn
) -> HttpResponse:
    """End the intent with all its re-plans. 202: a commit is in flight, the target decides."""
    agent = request.auth.agent
    plan = listing.own_plan(agent, target, plan_id)
    actor = actors.agent(agent.pk, agent.name)
    abandoned, in_flight = abandon(plan, reason=body.reason, note=body.note or "", actor=actor)
    plan = listing.own_plan(agent, target, plan_id)
    members = represent([plan], listing.read_at(plan))[0]
    ended = abandoned.intent.status == Intent.Status.ABANDONED
    members["abandonment"] = "abandoned" if ended else "already_closed"
    if in_flight:
        members["abandonment"] = "abandon_noted"
    return json_reply(members, 202 if in_flight else 200)


@router.post(
    "/intents",
    auth=MAY_WRITE,
    response={201: IntentOut, REFUSALS: ProblemOut},
    summary="Ask for a write",
)
def create_intent(request: ApiRequest, body: IntentIn) -> HttpResponse:
    """Say what should be written: the server runs the dry run and brings the plan to review."""
    intent = open_intent(request.auth.agent, IntentRequest(**_wish(body)))
    members = _intent_members(request, str(intent.pk))
    headers = {"ETag": entity_tag(members), "Location": members["links"]["self"]}
    return json_reply(members, 201, headers)


@router.get(
    "/intents/{intent_id}",
    auth=MAY_READ,
    response={200: IntentOut, READ_REFUSALS: ProblemOut},
    summary="Read an intent",
    openapi_extra=WAITING,
)
def read_intent(request: ApiRequest, intent_id: str) -> HttpResponse:
    """What was asked, what is planned, what changed, and the last decision."""
    members = _intent_members(request, intent_id)
    _offer_to_wait(request, intent_id)
    return tagged_reply(request, members, entity_tag(members))


def _wish(body: SubmissionIn | IntentIn) -> dict[str, Any]:
    return {
        "target": body.target,
        "operation": body.operation,
        "task_id": body.task_id,
        "inputs": body.inputs.raw,
        "inputs_value": body.inputs.value,
        "summary": body.summary or "",
        "reason": body.reason or "",
    }


def _evidence(item: EvidenceIn) -> EvidenceItem:
    return EvidenceItem(label=item.label, text=item.text or "", url=item.url or "")


def _intent_members(request: ApiRequest, intent_id: str) -> Members:
    agent = request.auth.agent
    intent = listing.own_intent(agent, intent_id)
    plan = listing.current_plan(agent, intent)
    replan = listing.current_replan(intent)
    return represent_intent(intent, plan, replan, listing.read_at(intent))


def _offer_to_wait(request: ApiRequest, intent_id: object) -> None:
    """Tell `config.asgi` what would change this answer, if the caller prefers to wait for it."""
    wait = cast("dict[str, Any]", getattr(request, "scope", {})).get(SCOPE_KEY)
    headers = request.headers
    prefers = wait_seconds(headers.get("Prefer", "")) is not None and "If-None-Match" in headers
    if isinstance(wait, Wait) and prefers:
        wait.keys.add(intent_key(intent_id))
