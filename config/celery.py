"""The doorbell. Rows are the queue; Celery only says "look now": losing it costs time alone.

A process that publishes must never wait for a dead broker; a worker must be able to wait for work.
They differ by `COUNTERSIGN_ROLE=worker`. Workers run with `-P threads`: a prefork pool would close
the whole database pool around every task, and a thread only returns its connection.
"""

import os
import threading
from typing import Any

from celery import Celery, signals
from django.conf import settings
from django.core.management.base import SystemCheckError
from kombu import Queue

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

PUBLISHER = {
    "max_retries": 0,
    "interval_start": 0,
    "interval_step": 0,
    "socket_timeout": 0.5,
    "socket_connect_timeout": 0.5,
}
WORKER = {
    # Longer than the longest attempt (45 s) and its bookkeeping. Nothing waits for it: the
    # sweeper finds due rows by itself.
    "visibility_timeout": 300,
    "unacked_restore_interval": 5,
    "unacked_restore_throttle": 1,
    # Reads block for a second at a time; the default of the client would cut longer ones.
    "socket_timeout": 10,
    "socket_connect_timeout": 2,
    "health_check_interval": 5,
}


def configuration() -> dict[str, Any]:
    """Celery's settings for this process."""
    return {
        "broker_url": settings.REDIS_URL,
        "broker_transport_options": WORKER if settings.ROLE == "worker" else PUBLISHER,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "task_publish_retry": False,
        "task_ignore_result": True,
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "worker_prefetch_multiplier": 1,
        # A commit on the wire must run to its end, whatever the broker does.
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "worker_send_task_events": False,
        "task_queues": [Queue("commit"), Queue("default")],
        "task_default_queue": "default",
        "task_routes": {"plans.tasks.commit_plan": {"queue": "commit"}},
        "task_serializer": "json",
        "accept_content": ["json"],
        "enable_utc": True,
        "timezone": "UTC",
    }


@signals.setup_logging.connect
def keep_our_logging(**_kwargs: Any) -> None:
    """Being connected is the point: Celery then leaves Django's logging alone."""


@signals.worker_init.connect
def refuse_unsafe_start(**_kwargs: Any) -> None:
    """A worker of an installation that may forget decisions sends nothing (FM-33)."""
    from config import checks  # needs the apps, which are ready only now

    try:
        checks.refuse_unsafe_start()
    except SystemCheckError as refusal:
        # Celery logs an ordinary error of a handler and starts all the same.
        raise SystemExit(str(refusal)) from None


_stop = threading.Event()


@signals.worker_ready.connect
def begin_heartbeat(sender: Any, **_kwargs: Any) -> None:
    """A thread of its own: the worker's loop must not wait for the database."""
    from plans import heartbeats  # needs the apps, which are ready only now

    parts = [heartbeats.worker(queue) for queue in sender.app.amqp.queues.consume_from]
    beating = threading.Thread(
        target=heartbeats.keep_beating, args=(parts, _stop), name="heartbeat", daemon=True
    )
    beating.start()


@signals.worker_shutting_down.connect
def end_heartbeat(**_kwargs: Any) -> None:
    """Silent from here; what is on the wire still comes to its end."""
    _stop.set()


app = Celery("countersign")
app.config_from_object(configuration())
app.autodiscover_tasks()
