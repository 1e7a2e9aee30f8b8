"""The application as ever, but with a short patience: what takes half a minute takes a second."""

from config import live, waiting

live.CHECK_SECONDS = 1.0  # type: ignore[misc]  # for this process alone
live.BEAT_SECONDS = 0.5  # type: ignore[misc]
waiting.LINGER_SECONDS = 0.2  # type: ignore[misc]

from config.asgi import application  # noqa: E402

__all__ = ["application"]
