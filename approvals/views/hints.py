"""Who may listen, and to what: the page's stream of hints (`config.live` holds it open)."""

from __future__ import annotations

from typing import Any, cast

from django.http import HttpResponse
from django.views.decorators.http import require_GET

from approvals import queue
from approvals.views import PersonRequest, signed_in
from plans.changes import EVERYBODY, SCOPE_KEY, Wait, target_key


@signed_in
@require_GET
def hints(request: PersonRequest) -> HttpResponse:
    """204 where nothing can hold the answer open: the page then asks every few seconds."""
    scope = cast("dict[str, Any]", getattr(request, "scope", {}))
    wait = scope.get(SCOPE_KEY)
    if not isinstance(wait, Wait):
        return HttpResponse(status=204)
    names = queue.seen_targets(request.user).values_list("name", flat=True)
    wait.keys |= {EVERYBODY, *map(target_key, names)}
    response = HttpResponse(content_type="text/event-stream")
    response.headers["Cache-Control"] = "no-store"
    # Proxies that buffer would hold a hint back until the next one.
    response.headers["X-Accel-Buffering"] = "no"
    return response
