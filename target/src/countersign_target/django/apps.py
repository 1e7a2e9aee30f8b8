"""The kit as a Django application: for its migration, it has no models."""

from django.apps import AppConfig


class CountersignTarget(AppConfig):
    name = "countersign_target.django"
    label = "countersign_target"
    verbose_name = "Countersign target"
