"""The REST interface of agents: one router per noun (A-1 … A-14)."""

from ninja import Router

from plans.api import events, intents, plans, replans, tasks

router = Router()
for noun in (plans, intents, tasks, replans, events):
    router.add_router("", noun.router)
