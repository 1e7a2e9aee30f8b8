"""Addresses of every page and endpoint."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

from config import documentation, health, metrics, refusals
from config.api import interface

admin.site.site_header = admin.site.site_title = "Countersign"

urlpatterns: list[URLPattern | URLResolver] = [
    path("", RedirectView.as_view(pattern_name="review"), name="home"),
    path("accounts/", include("config.accounts")),
    path("", include("approvals.urls")),
    path("audit/", include("audit.urls")),
    # The one way to a new password is the one that leaves an event (L-1).
    path("admin/password_change/", RedirectView.as_view(pattern_name="account_change_password")),
    path("admin/", admin.site.urls),
    # Without this the root of the interface would be found with a slash, by a redirect (BI-47).
    path("api/v1", refusals.not_found),
    path("api/v1/docs", documentation.api_docs, name="api_docs"),
    path("api/v1/", interface.urls),
    path("docs", documentation.api_docs),
    path("openapi.json", documentation.openapi),
    path("problems", documentation.problems, name="problems"),
    path("problems/<slug:code>", documentation.problem, name="problem"),
    path("health/live", health.live, name="live"),
    path("health/ready", health.ready, name="ready"),
    path("metrics", metrics.metrics, name="metrics"),
]

handler400 = refusals.bad_request
handler403 = refusals.forbidden
handler404 = refusals.not_found
handler500 = refusals.server_error
