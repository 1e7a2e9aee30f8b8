"""Agents that ask and reviewers that decide, at random, whatever is broken around them."""

from __future__ import annotations

import threading
from collections import Counter, deque
from dataclasses import dataclass, field
from random import Random
from typing import Final

import httpx

from demo.reviewer import PageLacks
from tests.chaos.weather import FAIR, Weather
from tests.journeys.people import Agent, Billing, Person

# What a broken world answers: an actor shrugs, as a person or a program does, and goes on.
REFUSED: Final = (AssertionError, PageLacks, httpx.HTTPError)
# Larger refunds need two people.
LARGEST_CENTS: Final = 90_000
# Agents rest while people have this many plans before them.
ENOUGH_PENDING: Final = 40


@dataclass(slots=True)
class Crowd:
    """What all actors of one run share; `met` counts what happened to them."""

    seed: int
    weather: Weather = FAIR
    stop: threading.Event = field(default_factory=threading.Event)
    met: Counter[str] = field(default_factory=Counter)
    acknowledged: set[str] = field(default_factory=set)
    desk: deque[str] = field(default_factory=deque)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def dice(self, name: str) -> Random:
        """Each actor throws its own: threads cannot reorder what the seed says."""
        return Random(f"{self.seed} {name}")

    def note(self, what: str) -> None:
        with self.lock:
            self.met[what] += 1


def ask(crowd: Crowd, name: str, agent: Agent, billing: Billing) -> None:
    """One agent: a fresh invoice, a dry run, a plan; sometimes the world moves behind it."""
    dice = crowd.dice(name)
    while not crowd.stop.is_set():
        if len(crowd.desk) > ENOUGH_PENDING:
            crowd.stop.wait(0.3)
            continue
        cents = dice.randint(100, LARGEST_CENTS)
        lives = dice.choice([None, None, None, None, None, 30, 9])
        moves = dice.random() < 0.1
        try:
            # Worth more than is asked for: billing must be able to pay a second time.
            invoice = billing.new_invoice(3 * cents)
            agent.submit(agent.dry_run(invoice, cents, lives))
            crowd.note("submitted")
            if moves:
                billing.refund_elsewhere(invoice, dice.randint(1, cents))
                crowd.note("moved")
        except REFUSED:
            crowd.note("requests refused or lost")
            crowd.stop.wait(0.2)


def hand_out(crowd: Crowd, agent: Agent) -> None:
    """Keep the desk full of pending plans; some land there twice, for two reviewers at once."""
    dice = crowd.dice("desk")
    seen: set[str] = set()
    while not crowd.stop.is_set():
        try:
            answer = agent.app.get("/plans", params={"status": "pending", "limit": "100"})
            items = answer.json()["items"] if answer.is_success else []
        except REFUSED:
            items = []
        for plan_id in (item["plan_id"] for item in items):
            # Again now and then: a page that failed, or a decision that was lost.
            if plan_id not in seen or (not crowd.desk and dice.random() < 0.3):
                seen.add(plan_id)
                crowd.desk.extend([plan_id] * dice.choice([1] * 9 + [2]))
        crowd.stop.wait(0.4)


def review(crowd: Crowd, name: str, person: Person) -> None:
    """One pair of eyes: opens a page, decides by its form, and remembers what it was told."""
    dice = crowd.dice(name)
    while not crowd.stop.is_set():
        try:
            plan_id = crowd.desk.popleft()
        except IndexError:
            crowd.stop.wait(0.1)
            continue
        verdict = "approve" if dice.random() < 0.9 else "reject"
        try:
            answer = person.decide({"plan_id": plan_id}, verdict, "Checked.")
        except REFUSED:
            crowd.note("pages refused or lost")
            continue
        crowd.note(f"{verdict}: {answer.status_code}")
        if verdict == "approve" and answer.status_code == httpx.codes.SEE_OTHER:
            with crowd.lock:
                crowd.acknowledged.add(plan_id)
