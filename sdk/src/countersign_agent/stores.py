"""Where a task's state is kept: in memory, or in one JSON file that survives the process."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
from pathlib import Path
from typing import Final, Protocol

from countersign_agent.documents import NotStrict, read_object
from countersign_agent.errors import StateDamaged, StateHeld
from countersign_agent.secret import Secret

OWNER_ONLY: Final = 0o600


class Store(Protocol):
    """Texts by task. A text that `save` took is there after a crash; one process holds a task."""

    def hold(self, task_id: str) -> None:
        """Nobody else may work on this task until it is released. StateHeld."""

    def load(self, task_id: str) -> Secret | None: ...

    def save(self, task_id: str, text: Secret) -> None:
        """Durable when it returns."""

    def drop(self, task_id: str) -> None:
        """Forget the task."""

    def release(self, task_id: str) -> None: ...

    def tasks(self) -> list[str]:
        """The tasks that it has something of."""


class Holds:
    """Names that this object holds: a second hold of one is refused."""

    def __init__(self) -> None:
        self._held: set[str] = set()
        self._lock = threading.Lock()

    def take(self, name: str) -> None:
        with self._lock:
            if name in self._held:
                raise StateHeld(f"The task {name} is open already.")
            self._held.add(name)

    def give_back(self, name: str) -> bool:
        """Whether nothing is held any more."""
        with self._lock:
            self._held.discard(name)
            return not self._held


class MemoryStore:
    """For a task that one process begins and ends: a crash loses it, and with it the token."""

    def __init__(self) -> None:
        self._texts: dict[str, Secret] = {}
        self._holds = Holds()

    def hold(self, task_id: str) -> None:
        self._holds.take(task_id)

    def load(self, task_id: str) -> Secret | None:
        return self._texts.get(task_id)

    def save(self, task_id: str, text: Secret) -> None:
        self._texts[task_id] = text

    def drop(self, task_id: str) -> None:
        self._texts.pop(task_id, None)

    def release(self, task_id: str) -> None:
        self._holds.give_back(task_id)

    def tasks(self) -> list[str]:
        return sorted(self._texts)


class FileLock:
    """A lock on a file beside the state; the system gives it back when its process dies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    def take(self) -> None:
        """StateHeld when another process has it."""
        if self._file is not None:
            return
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, OWNER_ONLY)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            raise StateHeld(f"Another process holds {self.path.name}.") from None
        self._file = file

    def give_back(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


class JsonFileStore:
    """One file for the tasks of one process at a time; only its owner can read it.

    Every change is written beside it, synced, and put in its place in one step.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._holds = Holds()
        self._file_lock = FileLock(self.path.with_name(f"{self.path.name}.lock"))
        self._lock = threading.Lock()
        self._texts: dict[str, Secret] | None = None

    def hold(self, task_id: str) -> None:
        self._holds.take(task_id)
        with self._lock:
            try:
                self._file_lock.take()
                if self._texts is None:
                    self._texts = self._read()
            except (StateHeld, StateDamaged):
                self._holds.give_back(task_id)
                raise

    def load(self, task_id: str) -> Secret | None:
        with self._lock:
            return self._known().get(task_id)

    def save(self, task_id: str, text: Secret) -> None:
        with self._lock:
            self._write(self._known() | {task_id: text})

    def drop(self, task_id: str) -> None:
        with self._lock:
            rest = {name: text for name, text in self._known().items() if name != task_id}
            self._write(rest)

    def release(self, task_id: str) -> None:
        with self._lock:
            if self._holds.give_back(task_id):
                self._texts = None
                self._file_lock.give_back()

    def tasks(self) -> list[str]:
        with self._lock:
            return sorted(self._read() if self._texts is None else self._texts)

    def _known(self) -> dict[str, Secret]:
        if self._texts is None:
            raise StateHeld("No task of this file is open.")
        return self._texts

    def _read(self) -> dict[str, Secret]:
        try:
            return _apart(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except NotStrict:
            damaged = StateDamaged(f"{self.path.name} cannot be read.")
        # Outside of the handler: the error that came first has the file's text in its frames.
        raise damaged

    def _write(self, texts: dict[str, Secret]) -> None:
        replace_file(self.path, _joined(texts))
        self._texts = texts


def _apart(text: bytes) -> dict[str, Secret]:
    return {name: Secret(json.dumps(task)) for name, task in read_object(text).items()}


def _joined(texts: dict[str, Secret]) -> Secret:
    """Apart, so that no variable holds a token when the disk is full and the error is shown."""
    whole = {name: json.loads(text.reveal()) for name, text in texts.items()}
    return Secret(json.dumps(whole, ensure_ascii=False))


def replace_file(path: Path, text: Secret) -> None:
    """Put a text in the place of a file: all of it or nothing, and on the disk."""
    new = path.with_name(f".{path.name}.new")
    with contextlib.suppress(FileNotFoundError):
        new.unlink()
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, OWNER_ONLY)
    with open(file, "wb") as stream:
        stream.write(text.reveal().encode())
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(new, path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
