"""Nouns, and POST to a noun; an address has the name of its view."""

from django.urls import path

from approvals.views import (
    comments,
    contract,
    decision,
    emergency,
    hints,
    notices,
    plan,
    replans,
    review,
    settings,
    unresolved,
    webhooks,
)

urlpatterns = [
    path("review/", review.review, name="review"),
    path("hints/", hints.hints, name="hints"),
    path("decisions/", review.decisions, name="decisions"),
    path("decisions/<int:pk>/dismissal/", review.dismissal, name="dismissal"),
    path("plans/<str:target>/<str:plan_id>/", plan.plan, name="plan"),
    path("plans/<str:target>/<str:plan_id>/decision/", decision.decision, name="decision"),
    path("plans/<str:target>/<str:plan_id>/comments/", comments.comment, name="comment"),
    path("plans/<str:target>/<str:plan_id>/withdrawal/", decision.withdrawal, name="withdrawal"),
    path("plans/<str:target>/<str:plan_id>/finding/", unresolved.finding, name="finding"),
    path("plans/<str:target>/<str:plan_id>/reading/", unresolved.reading, name="reading"),
    path("replans/", replans.replans, name="replans"),
    path("intents/<uuid:intent_id>/replans/", replans.plan_again, name="plan_again"),
    path("intents/<uuid:intent_id>/abandonment/", replans.give_up, name="give_up"),
    path("unresolved/", unresolved.unresolved, name="unresolved"),
    path("settings/", settings.settings, name="settings"),
    path("notices/", notices.my_notices, name="my_notices"),
    path("notices/mail/", notices.my_mail, name="my_mail"),
    path("settings/notices/", notices.notices, name="notices"),
    path(
        "settings/notices/<int:group_id>/switch/", notices.notice_switch, name="notice_switch"
    ),
    path(
        "settings/notices/<int:group_id>/webhook/", notices.notice_webhook, name="notice_webhook"
    ),
    path(
        "settings/notices/<int:group_id>/rotation/",
        notices.notice_rotation,
        name="notice_rotation",
    ),
    path("settings/webhooks/", webhooks.webhooks, name="webhooks"),
    path("settings/webhooks/addition/", webhooks.webhook_addition, name="webhook_addition"),
    path("settings/webhooks/<int:webhook_id>/", webhooks.webhook, name="webhook"),
    path(
        "settings/webhooks/<int:webhook_id>/rotation/",
        webhooks.webhook_rotation,
        name="webhook_rotation",
    ),
    path(
        "settings/webhooks/<int:webhook_id>/switch/",
        webhooks.webhook_switch,
        name="webhook_switch",
    ),
    path(
        "settings/deliveries/<int:delivery_id>/redelivery/",
        webhooks.redelivery,
        name="redelivery",
    ),
    path("targets/<str:name>/contract/", contract.contract, name="contract"),
    path("targets/<str:name>/contract/test/", contract.contract_test, name="contract_test"),
    path("targets/<str:name>/trial/", settings.trial, name="trial"),
    path("stop/", emergency.stop, name="stop"),
    path("stop/release-request/", emergency.release_request, name="release_request"),
    path("stop/release/", emergency.release, name="release"),
]
