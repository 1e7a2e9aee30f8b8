"""Plans: submit, read, list, abandon, add evidence (A-1 … A-9)."""

from django.http import HttpResponse
from ninja import Router

from audit import actors
from plans import listing, tasks
from plans.abandonment import abandon
from plans.api.callers import (
    FILTERS,
    MAY_READ,
    MAY_WRITE,
    READ_REFUSALS,
    REFUSALS,
    WAITING,
    ApiRequest,
    offer_to_wait,
)
from plans.api.wishes import evidence_of, wish
from plans.changes import intent_key
from plans.envelopes import AbandonmentOut, PlanOut, PlanPage, ProblemOut
from plans.errors import PlanAlreadySubmitted
from plans.evidence import add_evidence
from plans.models import Agent, Intent, Plan
from plans.replies import json_reply, placed_reply, tagged_reply
from plans.representation import entity_tag, plan_path, represent, represent_new
from plans.schemas import AbandonmentIn, EvidenceIn, SubmissionIn
from plans.status import Status
from plans.submission import Submission, submit
from plans.verbatim import member

router = Router()


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
        **wish(body),
        plan=body.received_plan,
        plan_text=member(request.body.decode(), "plan"),
        evidence=[evidence_of(item) for item in body.evidence or ()],
        replaces=body.replaces,
        replan_id=body.replan_id,
        idempotency_key=body.idempotency_key,
    )
    plan, created = _submitted(agent, submission)
    if created and plan.status == Status.VERIFYING and plan.replaces_id is None:
        members = represent_new(plan)
    else:
        plan = listing.own_plan(agent, plan.target.name, plan.plan_id)
        members = represent([plan], listing.read_at(plan))[0]
    if created:
        tasks.ring_for(plan)
        offer_to_wait(request, intent_key(plan.intent_id))
    return placed_reply(members, entity_tag(members), 201 if created else 200)


def _submitted(agent: Agent, submission: Submission) -> tuple[Plan, bool]:
    """`submit()`; a refusal links to the agent's own plan that is here already (FM-46)."""
    try:
        return submit(agent, submission)
    except PlanAlreadySubmitted as refusal:
        if "plan_status" in refusal.members:
            path = plan_path(submission.target, refusal.members["plan_id"])
            refusal.headers["Link"] = f'<{path}>; rel="duplicate"'
        raise


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
    offer_to_wait(request, intent_key(plan.intent_id))
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
    "/plans/{target}/{plan_id}/evidence",
    auth=MAY_WRITE,
    response={201: PlanOut, REFUSALS: ProblemOut},
    summary="Add evidence",
)
def add_plan_evidence(
    request: ApiRequest, target: str, plan_id: str, body: EvidenceIn
) -> HttpResponse:
    """A read found later: shown to people as the agent's words, never part of the digest."""
    agent = request.auth.agent
    add_evidence(listing.own_plan(agent, target, plan_id), evidence_of(body))
    plan = listing.own_plan(agent, target, plan_id)
    return json_reply(represent([plan], listing.read_at(plan))[0], 201)
