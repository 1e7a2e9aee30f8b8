"""Intents: ask for a write, read what remains of it (A-12)."""

from django.http import HttpResponse
from ninja import Router

from plans import listing, tasks
from plans.api.callers import (
    MAY_READ,
    MAY_WRITE,
    READ_REFUSALS,
    REFUSALS,
    WAITING,
    ApiRequest,
    offer_to_wait,
)
from plans.api.wishes import wish
from plans.changes import intent_key
from plans.envelopes import IntentOut, ProblemOut
from plans.intents import IntentRequest, open_intent
from plans.replies import placed_reply, tagged_reply
from plans.representation import Members, entity_tag, represent_intent
from plans.schemas import IntentIn

router = Router()


@router.post(
    "/intents",
    auth=MAY_WRITE,
    response={201: IntentOut, REFUSALS: ProblemOut},
    summary="Ask for a write",
)
def create_intent(request: ApiRequest, body: IntentIn) -> HttpResponse:
    """Say what should be written: the server runs the dry run and brings the plan to review."""
    intent = open_intent(request.auth.agent, IntentRequest(**wish(body)))
    tasks.ring(tasks.run_replan, intent.replans.values_list("pk", flat=True)[0])
    members = _intent_members(request, str(intent.pk))
    offer_to_wait(request, intent_key(intent.pk))
    return placed_reply(members, entity_tag(members), 201)


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
    offer_to_wait(request, intent_key(intent_id))
    return tagged_reply(request, members, entity_tag(members))


def _intent_members(request: ApiRequest, intent_id: str) -> Members:
    agent = request.auth.agent
    intent = listing.own_intent(agent, intent_id)
    plan = listing.current_plan(agent, intent)
    replan = listing.current_replan(intent)
    return represent_intent(intent, plan, replan, listing.read_at(intent))
