"""The app that gives `manage.py` the wiring's own commands and checks."""

from django.apps import AppConfig


class ConfigApp(AppConfig):
    name = "config"
    verbose_name = "Countersign"

    def ready(self) -> None:
        # Tasks bind to the app that exists when they are first called: ours has to be there,
        # or `delay()` would publish to a default broker on another port.
        from config import celery, checks  # noqa: F401
