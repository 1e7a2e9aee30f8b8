"""The admin's two kinds of pages: those that only show, and those whose changes are recorded."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db import models
from django.http import HttpRequest

from audit import actors
from audit.actions import Action
from audit.models import Era, Event
from audit.recording import Subject, record
from audit.safe_text import visible

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin


def actor_of(request: HttpRequest) -> actors.Actor:
    """The signed-in person; the admin lets nobody else in."""
    if not request.user.is_authenticated:
        raise PermissionError("nobody is signed in")
    return actors.person(request.user)


@cache
def _shown(model: type[models.Model], name: str) -> str | Callable[[Any], str]:
    """A column as the admin shows it; texts of others with what deceives written out (SEC-13)."""
    field = model._meta.get_field(name)
    if not isinstance(field, models.CharField | models.TextField | models.JSONField):
        return name

    def column(row: Any) -> str:
        value = getattr(row, name)
        if isinstance(field, models.JSONField):
            value = json.dumps(value, ensure_ascii=False, indent=1)
        return visible(value or "", lines=True)

    column.__name__ = name
    return admin.display(description=field.verbose_name, ordering=name)(column)


class ReadOnlyAdmin(ModelAdmin):
    """Rows that only verbs write. Bytes are never shown: they are secrets, or raw texts."""

    hidden: ClassVar[frozenset[str]] = frozenset()
    show_full_result_count = False
    actions: Sequence[str] | None = None

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return [
            _shown(self.opts.model, field.name)
            for field in self.opts.concrete_fields
            if not isinstance(field, models.BinaryField) and field.name not in self.hidden
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return self.get_fields(request, obj)

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        return [_shown(self.opts.model, str(name)) for name in self.list_display]

    def get_list_display_links(self, request: HttpRequest, list_display: Any) -> list[Any]:
        return list(list_display[:1])

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class AuditedAdmin(ModelAdmin):
    """Rows that operators edit: each change leaves an event in its transaction (L-1).

    Nothing is deleted here, since decisions and events name these rows for ever.
    """

    # Labels of fields that `save_model` records itself, with more than the name.
    recorded: ClassVar[frozenset[str]] = frozenset()

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def subject_of(self, obj: Any) -> Subject:
        """What the event is about, beyond the row's own name."""
        return Subject()

    def log_addition(self, request: HttpRequest, obj: models.Model, message: Any) -> LogEntry:
        self._record(request, obj, created=True, labels=[])
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: models.Model, message: Any) -> LogEntry:
        labels = [label for label in _changed(message) if label not in self.recorded]
        if labels:
            self._record(request, obj, created=False, labels=labels)
        return super().log_change(request, obj, message)

    def _record(
        self, request: HttpRequest, obj: models.Model, *, created: bool, labels: Sequence[str]
    ) -> None:
        details = {
            "kind": str(self.opts.verbose_name),
            "name": str(obj),
            "created": created,
            "changed": [{"key": label} for label in labels],
        }
        record(Action.CONFIG_APPLIED, actor_of(request), self.subject_of(obj), details)


def _changed(message: Any) -> list[str]:
    """The field labels of Django's own change message: `[{"changed": {"fields": […]}}]`."""
    entries = message if isinstance(message, list) else []
    return [label for entry in entries for label in entry.get("changed", {}).get("fields", [])]


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    list_display = ("id", "at", "action", "actor_label", "target", "plan_id")
    list_filter = ("actor_kind",)
    search_fields = ("=plan_id", "=actor_label", "=action")
    ordering = ("-id",)


@admin.register(Era)
class EraAdmin(ReadOnlyAdmin):
    list_display = ("number", "began_at", "reason")
