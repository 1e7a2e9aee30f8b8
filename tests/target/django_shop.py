"""The shop in Django: items by the ORM, plans and keys in the same database and transaction."""

from __future__ import annotations

from typing import Any

from django.db import connection, models
from django.urls import include, path

from countersign_target import Plan, State
from countersign_target.django import DjangoStore, urls
from tests.target.shop import Shop


class Item(models.Model):
    name = models.CharField(primary_key=True, max_length=40)
    stock = models.IntegerField()

    class Meta:
        app_label = "shop"
        db_table = "items"
        managed = False

    def __str__(self) -> str:
        return self.name


class OrmShop(Shop):
    """Reads and writes items as a Django developer would."""

    def stock(self, state: State, name: str) -> int | None:
        items = Item._default_manager.filter(name=name)
        item = (items.select_for_update() if state.committing else items).first()
        return item.stock if item else None

    def set_stock(self, connection: Any, name: str, stock: int) -> None:
        Item._default_manager.filter(name=name).update(stock=stock)

    def apply(self, plan: Plan) -> dict[str, Any]:
        assert connection.in_atomic_block
        return super().apply(plan)


urlpatterns = [path("kit/", include(urls(OrmShop(DjangoStore(), "%s").target())))]
