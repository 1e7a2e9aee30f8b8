"""Operators configure here by hand; what verbs write is only shown."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.forms import BaseModelForm
from django.http import HttpRequest

from audit.admin import AuditedAdmin, ReadOnlyAdmin, actor_of
from audit.recording import Subject
from plans.configuration import connections
from plans.configuration.api_keys import revoke_api_key
from plans.configuration.changes import Change
from plans.configuration.forms import AgentForm, OperationForm, TargetForm
from plans.models import Agent, ApiKey, Attempt, Evidence, Intent, Operation, Plan, Replan, Target


class NamedAdmin(AuditedAdmin):
    """A name stands in addresses and in the trail: it is chosen once."""

    fixed: tuple[str, ...] = ("name",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        shown = super().get_readonly_fields(request, obj)
        return shown if obj is None else (*shown, *self.fixed)


@admin.register(Target)
class TargetAdmin(NamedAdmin):
    form = TargetForm
    list_display = ("name", "base_url", "internal", "idempotency", "circuit_opened_at")
    readonly_fields = ("connection_version", "circuit_opened_at", "circuit_reason")
    filter_horizontal = ("reviewers",)
    recorded = frozenset({"base_url", "credential"})

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        first = ["name", "origin", "new_credential", "internal"]
        # A viewer's page has no form, and a page without a form has no such fields.
        if not self.has_change_permission(request, obj):
            first = ["name", "base_url", "internal"]
        model = [f.name for f in (*self.opts.fields, *self.opts.many_to_many) if f.editable]
        rest = [name for name in model if name not in (*first, "base_url", "id")]
        return [*first, *rest, *self.readonly_fields]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        shown = super().get_readonly_fields(request, obj)
        return shown if self.has_change_permission(request, obj) else (*shown, "base_url")

    def subject_of(self, obj: Target) -> Subject:
        return Subject(target=obj.name)

    def save_model(
        self, request: HttpRequest, obj: Target, form: BaseModelForm[Any], change: bool
    ) -> None:
        """Take the connection over from the locked row, with its own event (SEC-18)."""
        stored, changed = form.stored, tuple(form.reconnected)  # type: ignore[attr-defined]
        obj.base_url, obj.credential = stored.base_url, stored.credential
        obj.connection_version = stored.connection_version
        obj.circuit_opened_at, obj.circuit_reason = stored.circuit_opened_at, stored.circuit_reason
        if changed:
            connections.close_circuit(obj, actor_of(request))
            about = self.subject_of(obj)
            Change("target", obj.name, not change, changed, about).record(actor_of(request))
        super().save_model(request, obj, form, change)


@admin.register(Operation)
class OperationAdmin(NamedAdmin):
    form = OperationForm
    fixed = ("target", "name")
    list_display = ("name", "target", "risk", "replan", "reversible")
    list_filter = ("target", "risk")
    list_select_related = ("target",)

    def subject_of(self, obj: Operation) -> Subject:
        return Subject(target=obj.target.name, operation=obj.name)


@admin.register(Agent)
class AgentAdmin(NamedAdmin):
    form = AgentForm
    list_display = ("name", "owner", "active", "pending_cap", "rate_limit_per_minute")
    list_select_related = ("owner",)
    search_fields = ("name",)

    def subject_of(self, obj: Agent) -> Subject:
        return Subject(agent=obj.name)


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    """Keys are made at the terminal, where they are shown once; here they are revoked (SEC-34)."""

    hidden = frozenset({"digest"})
    list_display = ("key_id", "agent", "scopes", "expires_at", "last_used_at", "revoked_at")
    list_filter = ("agent",)
    list_select_related = ("agent",)
    actions = ("revoke",)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("plans.change_apikey")

    @admin.action(description="Revoke the selected keys", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        revoked = sum(revoke_api_key(key, actor_of(request)) for key in queryset)
        self.message_user(request, f"{revoked} revoked.")


@admin.register(Plan)
class PlanAdmin(ReadOnlyAdmin):
    hidden = frozenset({"token_sha256", "request_sha256"})
    list_display = ("plan_id", "target", "operation", "agent", "revision", "status", "received_at")
    list_filter = ("status", "target")
    list_select_related = ("target", "operation", "agent")
    search_fields = ("=plan_id", "=task_id")
    ordering = ("-id",)


@admin.register(Intent)
class IntentAdmin(ReadOnlyAdmin):
    list_display = ("id", "target", "operation", "agent", "task_id", "status")
    list_filter = ("status",)
    list_select_related = ("target", "operation__target", "agent")
    search_fields = ("=task_id",)
    ordering = ("-created_at",)


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    hidden = frozenset({"lease"})
    list_display = ("plan", "number", "outcome", "http_status", "started_at", "elapsed_ms")
    list_filter = ("outcome",)
    list_select_related = ("plan",)
    ordering = ("-id",)


@admin.register(Replan)
class ReplanAdmin(ReadOnlyAdmin):
    hidden = frozenset({"lease"})
    list_display = ("id", "intent", "cause", "mode", "status", "tries", "next_try_at")
    list_filter = ("status", "cause")
    ordering = ("-id",)


@admin.register(Evidence)
class EvidenceAdmin(ReadOnlyAdmin):
    list_display = ("plan", "label", "added_at")
    list_select_related = ("plan",)
    ordering = ("-id",)
