"""Addresses of every page and endpoint."""

from importlib.util import find_spec

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

from config import documentation, health, refusals
from config.api import interface


def _pages(prefix: str, module: str) -> list[URLPattern | URLResolver]:
    try:
        return [path(prefix, include(module))] if find_spec(module) else []
    except ImportError:
        return []


urlpatterns: list[URLPattern | URLResolver] = [
    path("", RedirectView.as_view(pattern_name="review"), name="home"),
    path("accounts/", include("allauth.urls")),
    *_pages("", "approvals.urls"),
    *_pages("audit/", "audit.urls"),
    path("admin/", admin.site.urls),
    path("api/v1/docs", documentation.api_docs, name="api_docs"),
    path("api/v1/", interface.urls),
    path("docs", documentation.api_docs),
    path("openapi.json", documentation.openapi),
    path("problems", documentation.problems, name="problems"),
    path("problems/<slug:code>", documentation.problem, name="problem"),
    path("health/live", health.live, name="live"),
    path("health/ready", health.ready, name="ready"),
]

handler400 = refusals.bad_request
handler403 = refusals.forbidden
handler404 = refusals.not_found
handler500 = refusals.server_error
