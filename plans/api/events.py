"""The events feed (A-14)."""

from django.http import HttpResponse
from ninja import Router

from plans import feed, listing
from plans.api.callers import FEED, MAY_READ, READ_REFUSALS, ApiRequest, offer_to_wait
from plans.changes import agent_key
from plans.envelopes import EventPage, ProblemOut
from plans.replies import json_reply

router = Router()


@router.get(
    "/events",
    auth=MAY_READ,
    response={200: EventPage, READ_REFUSALS: ProblemOut},
    summary="Read events",
    by_alias=True,
    openapi_extra=FEED,
)
def read_events(request: ApiRequest) -> HttpResponse:
    """Every transition of your plans, in order; go on with `next` as `after`."""
    agent = request.auth.agent
    after, limit = listing.feed_query(dict(request.GET.lists()))
    items, end = feed.read(agent, after, limit)
    if not items:
        offer_to_wait(request, agent_key(agent.name), unconditionally=True)
    return json_reply({"items": items, "next": str(end)})
