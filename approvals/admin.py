"""People, their groups and policies, edited by operators; decisions, only shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import QuerySet
from django.forms import BaseModelForm
from django.http import HttpRequest

from approvals.models import Decision, Policy
from approvals.policies.configuration import changed_keys
from approvals.policies.editing import PolicyForm
from audit.admin import AuditedAdmin, ReadOnlyAdmin, actor_of
from plans.configuration.changes import Change

if TYPE_CHECKING:
    BaseUserAdmin = UserAdmin[User]
else:
    BaseUserAdmin = UserAdmin

# One way in: the admin's own form knows neither the limits on guessing nor second factors.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]
admin.site.unregister([User, Group])


@admin.register(User)
class PersonAdmin(AuditedAdmin, BaseUserAdmin):
    """An operator edits people, but neither superusers nor rights that only those hand out."""

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        if getattr(request.user, "is_superuser", False):
            return fieldsets
        kept = ("is_superuser", "user_permissions")
        return [
            (name, options | {"fields": [f for f in options["fields"] if f not in kept]})
            for name, options in fieldsets
        ]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whoever sets a superuser's password is one."""
        protected = obj is not None and obj.is_superuser
        if protected and not getattr(request.user, "is_superuser", False):
            return False
        return super().has_change_permission(request, obj)

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> Any:
        """In one transaction with its event (L-1); Django gives this page none."""
        with transaction.atomic():
            return super().user_change_password(request, id, form_url)


@admin.register(Group)
class PeopleGroupAdmin(AuditedAdmin, GroupAdmin):
    """Operators name groups; what a group may do in this admin, superusers say."""

    def get_exclude(self, request: HttpRequest, obj: Any = None) -> Any:
        return () if getattr(request.user, "is_superuser", False) else ("permissions",)


@admin.register(Policy)
class PolicyAdmin(AuditedAdmin):
    """A policy is switched off, never deleted: pages and events name it."""

    form = PolicyForm
    list_display = ("name", "active", "when", "deny", "note_required", "step_up", "dwell_seconds")
    list_filter = ("active",)
    search_fields = ("name",)
    ordering = ("name",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        shown = super().get_readonly_fields(request, obj)
        return shown if obj is None else (*shown, "name")

    def save_model(
        self, request: HttpRequest, obj: Policy, form: BaseModelForm[Any], change: bool
    ) -> None:
        """Who changed which rule from what to what, in the transaction of the change (SEC-7)."""
        before = Policy.objects.select_for_update().filter(pk=obj.pk).first()
        keys = changed_keys(before, obj)
        super().save_model(request, obj, form, change)
        if keys:
            Change("policy", obj.name, before is None, keys).record(actor_of(request))

    def _record(self, *args: Any, **kwargs: Any) -> None:
        """`save_model` has recorded it, with the values before and after."""


@admin.register(Decision)
class DecisionAdmin(ReadOnlyAdmin):
    list_display = ("plan", "person", "verdict", "round", "decided_at", "withdrawn_at")
    list_filter = ("verdict",)
    list_select_related = ("plan", "person")
    ordering = ("-id",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Decision]:
        return Decision.with_withdrawn.order_by("-id")
