"""Django's mail backend with an end: a server that dribbles holds its thread for one deadline."""

from __future__ import annotations

import smtplib
import socket
import threading
from contextlib import suppress
from typing import Any, Final

from django.core.mail.backends import smtp

# From the first byte to the last answer. `timeout` of the options bounds each step alone.
TOTAL_SECONDS: Final = 30.0


class _Timed(smtplib.SMTP):
    """A conversation that is cut when its time is over: TimeoutError, whatever was dribbled."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.sock: socket.socket | None = None
        self._over = False
        self._watch = threading.Timer(TOTAL_SECONDS, self._cut)
        self._watch.daemon = True
        self._watch.start()
        try:
            super().__init__(*args, **options)
        except BaseException:
            self.close()
            raise

    def _cut(self) -> None:
        """Below TLS, whose own shutdown would talk to the server first."""
        self._over = True
        if self.sock is not None:
            with suppress(OSError):
                socket.socket.shutdown(self.sock, socket.SHUT_RDWR)

    def getreply(self) -> tuple[int, bytes]:
        try:
            reply = super().getreply()
        except smtplib.SMTPServerDisconnected as lost:
            if self._over or isinstance(lost.__context__, TimeoutError):
                raise TimeoutError from lost
            raise
        if self._over:
            raise TimeoutError
        return reply

    def close(self) -> None:
        self._watch.cancel()
        super().close()


class _TimedTLS(_Timed, smtplib.SMTP_SSL):
    """The same, for a server that speaks TLS from the first byte."""


class EmailBackend(smtp.EmailBackend):
    @property
    def connection_class(self) -> type[smtplib.SMTP]:
        return _TimedTLS if self.use_ssl else _Timed

    def _close_connection(self, connection: smtplib.SMTP) -> None:
        """However the server takes our leave, the socket is closed."""
        try:
            super()._close_connection(connection)  # type: ignore[misc]  # not in the stubs
        finally:
            connection.close()
