"""A target in a process of its own, at bare sockets, which goes wrong as it is told to.

    python -m tests.faults.durable_target FOLDER

Everything it knows is in FOLDER (durable_store.py): SIGKILL at any moment loses neither a line of
its ledger nor an answer kept under a key. Its addresses are in FOLDER/ports.json and stay the same
over restarts; each is a *house* with a manner of its own. Orders come over loopback:

    POST /_plans   [plan, …]                      as dry runs made them
    POST /_play    [{subject, kind, mode}, …]     modes.py; kind: commit, read or dry_run
    POST /_open    {}                             the refusing house listens from now on
    GET  /_ledger, /_arrivals                     every effect; every commit that was read
"""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from email.utils import formatdate
from pathlib import Path
from typing import Any, Final

from tests.faults.durable_store import Commit, Store, planned
from tests.faults.modes import Answer, Fault
from tests.faults.raw_target import Mode, perform, read_request

# Beyond the patience of every caller in the tests.
LATE_SECONDS: Final = 1.5


@dataclass(frozen=True, slots=True)
class House:
    """One address. `retention`: seconds that keys are kept; `offset`: how far its clock is off."""

    refuses: bool = False
    retention: float = float("inf")
    offset: float = 0.0


HOUSES: Final = {
    "plain": House(),
    # The same as plain: a caller may have less patience with it.
    "hopeless": House(),
    "patient": House(),
    "refusing": House(refuses=True),
    "forgetful": House(retention=3.0),
    "ahead": House(offset=120.0),
    "behind": House(offset=-120.0),
}


@dataclass(frozen=True, slots=True)
class Request:
    """One request, whole or as far as it could be looked at."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


def parse(data: bytes) -> Request:
    top, _, body = data.partition(b"\r\n\r\n")
    first, *lines = top.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    pairs = (line.split(":", 1) for line in lines)
    return Request(method, path, {name.lower(): text.strip() for name, text in pairs}, body)


def peek(connection: socket.socket) -> Request:
    """The head of a request, left where it is: what is not taken from a socket resets it."""
    while b"\r\n\r\n" not in (data := connection.recv(65536, socket.MSG_PEEK)):
        if not data:
            raise ConnectionResetError
        time.sleep(0.001)
    return parse(data)


class DurableTarget:
    """Listens at every house, one thread a connection."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder / "target.sqlite")
        self.never = threading.Event()
        self.listeners: dict[str, socket.socket] = {}
        file = folder / "ports.json"
        known = json.loads(file.read_text()) if file.exists() else {}
        for name in HOUSES:
            self.listeners[name] = listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", known.get(name, 0)))
        opened = (folder / "opened").exists()
        self.opened = folder / "opened"
        for name, house in HOUSES.items():
            if opened or not house.refuses:
                self.listen(name)
        if not known:
            ports = {name: each.getsockname()[1] for name, each in self.listeners.items()}
            part = file.with_suffix(".part")
            part.write_text(json.dumps(ports))
            part.replace(file)

    def listen(self, name: str) -> None:
        """Until then its port is taken, and refuses."""
        self.listeners[name].listen(256)
        threading.Thread(target=self._accept, args=(name,)).start()

    def _accept(self, name: str) -> None:
        while True:
            connection, _ = self.listeners[name].accept()
            arguments = (connection, HOUSES[name])
            threading.Thread(target=self._serve, args=arguments, daemon=True).start()

    def _serve(self, connection: socket.socket, house: House) -> None:
        with contextlib.suppress(OSError), connection:  # Callers that leave early are expected.
            connection.settimeout(10)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            seen = peek(connection)
            order = self._orders().get((seen.method, seen.path))
            if order is not None:
                body = parse(read_request(connection)).body
                answer = Answer(200, order(json.loads(body or b"null")))
                perform(connection, Mode([answer.whole()]), self.never)
            else:
                self._answer(connection, house, seen)

    def _orders(self) -> dict[tuple[str, str], Callable[[Any], Any]]:
        return {
            ("POST", "/_plans"): self.store.register,
            ("POST", "/_play"): self.store.play,
            ("POST", "/_open"): self._open,
            ("GET", "/_ledger"): lambda _: self.store.rows("ledger"),
            ("GET", "/_arrivals"): lambda _: self.store.rows("arrival"),
        }

    def _open(self, _: object) -> None:
        if not self.opened.exists():
            self.opened.touch()
            for name, house in HOUSES.items():
                if house.refuses:
                    self.listen(name)

    def _answer(self, connection: socket.socket, house: House, seen: Request) -> None:
        if seen.path.endswith("/commit"):
            self._commit(connection, house, seen)
            return
        if seen.method == "GET":
            plan_id = seen.path.rpartition("/")[2]
            fault = self.store.next_fault(plan_id, "read")
            meant = Answer(500) if fault.unread else self.store.state(plan_id, house.offset)
            self._say(connection, house, fault, meant)
            return
        self._dry_run(connection, house)

    def _commit(self, connection: socket.socket, house: House, seen: Request) -> None:
        """The fault is known by the head alone, as some of them leave the request unread."""
        known = (seen.headers["plan-id"], seen.headers["idempotency-key"], seen.headers["attempt"])
        fault = self.store.unread_fault(known[0])
        if fault is not None:
            perform(connection, fault.on_the_wire(Answer(500)), self.never)
            return
        body = parse(read_request(connection)).body
        request = Commit(*known, body, house.retention, house.offset)
        fault, meant = self.store.commit(request)
        if fault.does == "late":
            threading.Timer(LATE_SECONDS, self.store.finish, [request]).start()
        self._say(connection, house, fault, meant, taken=True)

    def _dry_run(self, connection: socket.socket, house: House) -> None:
        inputs = json.loads(parse(read_request(connection)).body)
        fault = self.store.next_fault(inputs["invoice_id"], "dry_run")
        plan = planned(inputs)
        if fault.answer is None and fault.unread is None:
            self.store.register([plan])
        self._say(connection, house, fault, Answer(200, plan), taken=True)

    def _say(
        self,
        connection: socket.socket,
        house: House,
        fault: Fault,
        meant: Answer,
        *,
        taken: bool = False,
    ) -> None:
        if house.offset:
            date = {"Date": formatdate(time.time() + house.offset, usegmt=True)}
            meant = replace(meant, headers={**meant.headers, **date})
        mode = fault.on_the_wire(meant)
        if mode.reads and not taken:
            read_request(connection)
        perform(connection, mode, self.never)


if __name__ == "__main__":
    DurableTarget(Path(sys.argv[1]))
