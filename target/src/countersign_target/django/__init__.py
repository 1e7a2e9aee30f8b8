"""A target in Django: `path("billing/", include(urls(target)))`, and Django's database as store.

Add `countersign_target.django` to INSTALLED_APPS and migrate: that creates the kit's two tables.
"""

from countersign_target.django.stores import DjangoStore
from countersign_target.django.views import urls

__all__ = ["DjangoStore", "urls"]
