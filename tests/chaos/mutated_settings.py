"""The product's settings, and one bug more (`CHAOS_MUTANT`, see mutants.py)."""

from __future__ import annotations

from config import settings

globals().update({name: getattr(settings, name) for name in dir(settings) if name.isupper()})
INSTALLED_APPS = [*settings.INSTALLED_APPS, "tests.chaos.mutants.Mutants"]
