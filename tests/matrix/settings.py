"""The product's settings with its failpoints live: for the processes that the matrix breaks."""

from __future__ import annotations

import os

from config import settings

globals().update({name: getattr(settings, name) for name in dir(settings) if name.isupper()})
INSTALLED_APPS = [*settings.INSTALLED_APPS, "tests.matrix.arming.Failpoints"]
if "CHAOS_MUTANT" in os.environ:
    INSTALLED_APPS.append("tests.chaos.mutants.Mutants")
FAILPOINTS = True
