"""Hearing the hints of `plans.hints`, for as long as the broker lives; without it, nothing."""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog
from django.conf import settings
from redis.asyncio import Redis
from redis.exceptions import RedisError

from plans.hints import CHANNEL

log = structlog.get_logger(__name__)
AGAIN_SECONDS: Final = 2.0


async def listen(nudge: Callable[[], None]) -> None:
    """Call `nudge` at every hint until cancelled. A dead broker is tried again, quietly (Q-1)."""
    while True:
        try:
            # A blocking read has no timeout of its own: silence is the normal case.
            redis = Redis.from_url(settings.REDIS_URL, socket_timeout=None)
            async with redis, redis.pubsub() as channel:
                await channel.subscribe(CHANNEL)
                async for _ in channel.listen():
                    nudge()
        except (RedisError, OSError) as fault:
            log.info("hints.unheard", fault=type(fault).__name__)
        await asyncio.sleep(AGAIN_SECONDS)
