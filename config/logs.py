"""One JSON object per log line on stderr, with what structlog's context knows (request id).

Bodies of requests and answers are never logged: they carry plan tokens.
"""

from typing import Any

import structlog

PROCESSORS: list[structlog.types.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.stdlib.ExtraAdder(allow=None),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
]
# Django hangs the whole request on its records, uvicorn a copy of the message with colours, and
# structlog itself.
DROPPED = (
    *("request", "server_time", "color_message", "taskName", "data", "context", "stack_info"),
    *("_logger", "_name"),
)


def drop_noise(_logger: Any, _name: str, event: dict[str, Any]) -> dict[str, Any]:
    """Leave out what other libraries attach to their records."""
    return {key: value for key, value in event.items() if key not in DROPPED}


def configuration(level: str) -> dict[str, Any]:
    """The value of Django's LOGGING; also binds structlog to the same handler."""
    structlog.configure(
        processors=[*PROCESSORS[:1], structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    to_root: dict[str, Any] = {"handlers": [], "propagate": True}
    names = ("django", "django.server", "uvicorn", "uvicorn.error", "celery")
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": PROCESSORS[:1],
                "processors": [
                    *PROCESSORS[1:],
                    drop_noise,
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    structlog.processors.JSONRenderer(default=str),
                ],
            }
        },
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "json"},
            "stdout": {"class": "logging.StreamHandler", "stream": "ext://sys.stdout"},
        },
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            **dict.fromkeys(names, to_root),
            # Signed heads of the audit trail, as they are: for whoever collects them.
            "audit.checkpoints.stdout": {
                "handlers": ["stdout"],
                "level": "INFO",
                "propagate": False,
            },
            # One line per request would cost a tenth of it; refusals are logged by ourselves.
            "uvicorn.access": {"handlers": [], "propagate": False},
            # At INFO these repeat every task twice, and every outgoing request with its address.
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
            "httpx": {"level": "WARNING"},
            "httpcore": {"level": "WARNING"},
        },
    }
