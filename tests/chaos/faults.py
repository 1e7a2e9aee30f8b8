"""What breaks: billing's answers, the processes, Valkey and PostgreSQL, at random from the seed."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from random import Random
from typing import Final

import redis

from config.embedded import Cluster
from tests.chaos.crowd import REFUSED, Crowd
from tests.journeys.people import Billing
from tests.journeys.product import Product

VICTIMS: Final = ("worker-commit", "worker-default", "sweeper")
# The supervisor starts again at once what lived longer than ten seconds.
LIFE_SECONDS: Final = 12.0


def spoil_answers(crowd: Crowd, billing: Billing) -> None:
    """Arm billing for the next commits, again and again; at times it is well."""
    dice = crowd.dice("billing")
    while not crowd.stop.wait(dice.uniform(0.05, 0.4)):
        mode = dice.choice([*crowd.weather.modes, "none"])
        seconds = dice.uniform(0.2, crowd.weather.longest_fault)
        order = {"commit": mode, "times": dice.randint(2, 6), "seconds": seconds}
        try:
            billing.client.post("/_faults", json=order)
        except REFUSED:
            crowd.note("requests refused or lost")


class Hammer:
    """Kills, freezes and restarts; one blow at a time."""

    def __init__(self, crowd: Crowd, product: Product) -> None:
        self.crowd, self.product = crowd, product
        self.cluster = Cluster(product.home)
        self.hit_at = dict.fromkeys(VICTIMS, float("-inf"))

    def swing(self) -> None:
        """Until the run ends; leaves every server running and no process frozen."""
        dice = self.crowd.dice("hammer")
        blows = [self.kill, self.kill, self.kill, self.freeze, self.forget, self.away, self.crash]
        while not self.crowd.stop.wait(dice.uniform(1, 6)):
            dice.choice(blows)(dice)

    def kill(self, dice: Random) -> None:
        """SIGKILL one that has lived for a while."""
        if pid := self._victim(dice):
            self.crowd.note("SIGKILL")
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def freeze(self, dice: Random) -> None:
        """SIGSTOP, now and then for longer than a lease, then SIGCONT."""
        seconds = dice.choice([0.5, 1.5, 3, 5, 5, 19])
        if pid := self._victim(dice):
            self.crowd.note("SIGSTOP")
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                self.crowd.stop.wait(seconds)
                os.kill(pid, signal.SIGCONT)

    def forget(self, dice: Random) -> None:
        """Every doorbell that has not been heard is gone."""
        self.crowd.note("FLUSHALL")
        url = self.cluster.urls()["valkey"]
        with contextlib.suppress(redis.RedisError), redis.Redis.from_url(url) as valkey:
            valkey.flushall()

    def away(self, dice: Random) -> None:
        """Valkey is gone for a while."""
        self.crowd.note("Valkey stopped")
        self.cluster.stop(("valkey",), immediate=True)
        self.crowd.stop.wait(dice.uniform(0.2, 4))
        self.cluster.start(("valkey",))

    def crash(self, dice: Random) -> None:
        """PostgreSQL, for Countersign and billing alike, as after a power cut."""
        self.crowd.note("PostgreSQL restarted")
        self.cluster.restart(("postgres",), immediate=True)

    def _victim(self, dice: Random) -> int:
        """0: all have been hit too lately, or it is being started again."""
        name = dice.choice(VICTIMS)
        if time.monotonic() - self.hit_at[name] < LIFE_SECONDS:
            return 0
        self.hit_at[name] = time.monotonic()
        return self.product.pid(name)
