"""An HTTP/JSON API as one finds them: customers, ETags, conditional writes, and faults on order.

A process of its own, standard library only: `python customers_api.py`; it prints its address.
`/_faults {read?, write?, seconds?}` orders how the next calls go wrong; `/_ledger` is every write
that was carried out; `/_move {id, patch?, count?}` is another writer.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "customers-api-token"


class World:
    """The customers, their versions, the ledger, and what is ordered."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.customers: dict[str, dict[str, Any]] = {}
        self.versions: dict[str, int] = {}
        self.ledger: list[dict[str, Any]] = []
        self.answers: dict[str, tuple[int, Any, dict[str, str]]] = {}
        self.faults: dict[str, Any] = {}

    def etag(self, number: str) -> str:
        return f'"v{self.versions[number]}"'

    def put(self, number: str, document: dict[str, Any]) -> None:
        self.customers[number] = document
        self.versions[number] = self.versions.get(number, 0) + 1

    def take(self, kind: str) -> str:
        """A fault, for one call."""
        return str(self.faults.pop(kind, ""))


WORLD = World()


def merged(document: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self._body()
        with WORLD.lock:
            match self.path:
                case "/_faults":
                    WORLD.faults = body
                case "/_move":
                    moved = merged(WORLD.customers.get(body["id"], {}), body.get("patch", {}))
                    if name := body.get("count"):
                        moved[name] = moved.get(name, 0) + 1
                    WORLD.put(body["id"], moved)
                case "/_delete":
                    del WORLD.customers[body["id"]]
        self._say(200, {})

    def do_GET(self) -> None:
        if self.path == "/_ledger":
            return self._say(200, {"items": WORLD.ledger})
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            return self._say(401, {"detail": "who are you?"})
        fault, number = WORLD.take("read"), self.path.rpartition("/")[2]
        if fault == "silence":
            time.sleep(float(WORLD.faults.get("seconds", 5)))
        if fault == "redirect":
            return self._say(307, {}, Location="/elsewhere")
        if fault == "html":
            return self._say(200, "<html>sign in</html>", ETag='"v1"')
        if fault == "500":
            return self._say(500, {})
        if fault in ("drip", "short"):
            return self._half(drips=fault == "drip")
        with WORLD.lock:
            if number not in WORLD.customers:
                return self._say(404, {"detail": "no such customer"})
            tag = {"weak": f"W/{WORLD.etag(number)}", "bare": WORLD.etag(number).strip('"')}
            headers = {} if fault == "no-etag" else {"ETag": tag.get(fault, WORLD.etag(number))}
            document = WORLD.customers[number]
        return self._say(200, document, **headers)

    def do_PATCH(self) -> None:
        self._write(whole=False)

    def do_PUT(self) -> None:
        self._write(whole=True)

    def _write(self, *, whole: bool) -> None:
        body, number, fault = self._body(), self.path.rpartition("/")[2], WORLD.take("write")
        seconds = float(WORLD.faults.get("seconds", 5))
        if fault.isdigit() and fault != "429":
            return self._say(int(fault), {"detail": f"ordered {fault}"})
        match fault:
            case "429":
                return self._say(429, {}, **{"Retry-After": "2"})
            case "silence":
                time.sleep(seconds)
                return self._hang_up()
            case "reset":
                return self._hang_up()
            case "redirect":
                return self._say(307, {}, Location="/elsewhere")
            case "html":
                return self._say(200, "<html>sign in</html>")
            case "nothing-done" | "nothing-done-moved":
                if fault == "nothing-done-moved":
                    with WORLD.lock:
                        WORLD.put(number, WORLD.customers[number] | {"name": "another"})
                return self._say(204, None)
        status, answer, headers = self._carried_out(number, body, whole=whole)
        match fault if status < 300 else "":
            case "apply-silence":
                time.sleep(seconds)
                return self._hang_up()
            case "apply-reset":
                return self._hang_up()
            case "apply-500":
                return self._say(500, {})
            case "apply-twice":
                again, answer, headers = self._carried_out(number, body, whole=whole)
                return self._say(again, answer, **headers)
            case "apply-204":
                return self._say(204, None)
            case "apply-slowly":
                time.sleep(seconds)
        return self._say(status, answer, **headers)

    def _carried_out(
        self, number: str, body: Any, *, whole: bool
    ) -> tuple[int, Any, dict[str, str]]:
        key = self.headers.get("Idempotency-Key", "")
        lax = WORLD.take("lax")
        with WORLD.lock:
            if key in WORLD.answers:
                return WORLD.answers[key]
            if number not in WORLD.customers:
                return 404, {"detail": "no such customer"}, {}
            if "If-Match" not in self.headers:
                return 428, {"detail": "If-Match, please"}, {}
            if self.headers["If-Match"] != WORLD.etag(number) and not lax:
                return 412, {"detail": "another version"}, {}
            if body.get("email") == "taken@example.com":
                return 422, {"detail": "somebody has this address"}, {}
            before = WORLD.customers[number]
            # As many APIs do: its own fields are its own, and values get a form of its own.
            after = body | {"id": number} if whole else merged(before, body)
            after["email"] = str(after.get("email", "")).lower()
            if WORLD.take("forgetful"):
                after.pop("changed_by", None)
            WORLD.put(number, after | {"updated_at": f"t{WORLD.versions[number] + 1}"})
            entry = {"id": number, "method": self.command, "sent": body, "key": key}
            WORLD.ledger.append(entry | {"type": self.headers["Content-Type"]})
            answer = 200, WORLD.customers[number], {"ETag": WORLD.etag(number)}
            if key:
                WORLD.answers[key] = answer
            return answer

    def _body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def _hang_up(self) -> None:
        self.close_connection = True
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.connection.close()

    def _half(self, *, drips: bool) -> None:
        """More is promised than comes; or it comes byte by byte, and no read takes long."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
            for number in range(30 if drips else 0):
                self.wfile.write(f"X-{number}: 1\r\n".encode())
                time.sleep(0.1)
            self.wfile.write(b'ETag: "v1"\r\nContent-Length: 99\r\n\r\n{"id": "x"}')

    def _say(self, status: int, body: Any, **headers: str) -> None:
        raw = (
            b"" if body is None else (body if isinstance(body, str) else json.dumps(body)).encode()
        )
        kind = "text/html" if isinstance(body, str) else "application/json"
        with contextlib.suppress(OSError):  # an adapter that was killed, or lost patience
            self.send_response(status)
            for name, value in {"Content-Type": kind, **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

    def finish(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        print(f"customers listen on http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever(0.1)
