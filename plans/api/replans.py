"""Re-plans that the agent makes (A-13)."""

from django.http import HttpResponse
from ninja import Router

from plans import listing
from plans.api.callers import MAY_REPLAN, REFUSALS, WAITING_FOR_WORK, ApiRequest, offer_to_wait
from plans.changes import agent_key
from plans.claims import claim, fail
from plans.envelopes import ClaimOut, ProblemOut
from plans.models import Agent, Replan
from plans.replies import json_reply
from plans.representation import Members, represent, represent_replan
from plans.schemas import ClaimIn, FailureIn

router = Router()


@router.post(
    "/replans/claim",
    auth=MAY_REPLAN,
    response={200: ClaimOut, 204: None, REFUSALS: ProblemOut},
    summary="Claim a re-plan",
    openapi_extra=WAITING_FOR_WORK,
)
def claim_replan(request: ApiRequest, body: ClaimIn) -> HttpResponse:
    """Lease one of your open re-plans for 60 s; 204: none. Complete it by `POST /plans`."""
    agent = request.auth.agent
    found = claim(agent, body.replan_id)
    if found is None:
        offer_to_wait(request, agent_key(agent.name), unconditionally=True)
        return HttpResponse(status=204)
    return json_reply(_members(agent, found))


@router.post(
    "/replans/{int:replan_id}/failure",
    auth=MAY_REPLAN,
    response={200: ClaimOut, REFUSALS: ProblemOut},
    summary="Give a re-plan back",
)
def fail_replan(request: ApiRequest, replan_id: int, body: FailureIn) -> HttpResponse:
    """It cannot be planned now; people read the reason, and it is offered again."""
    agent = request.auth.agent
    return json_reply(_members(agent, fail(agent, replan_id, body.reason)))


def _members(agent: Agent, replan: Replan) -> Members:
    """The re-plan, what was asked, and the dead plan with its conflict and its last decision."""
    intent = replan.intent
    dead = None
    if replan.plan_id is not None:
        row = listing.own_plans(agent).get(pk=replan.plan_id)
        dead = represent([row], listing.read_at(row))[0]
    return {
        **represent_replan(replan),
        "intent_id": str(intent.pk),
        "target": intent.target.name,
        "operation": intent.operation.name,
        "task_id": intent.task_id,
        "asked": {
            "inputs": bytes(intent.inputs).decode(),
            "summary": intent.summary,
            "reason": intent.reason,
        },
        "plan": dead,
    }
