"""`countersign-etag-target FILE`: the target, until told to stop.

`--check` reads the file and ends: 0, or 2 with what is wrong. `--probe INPUTS` asks the API as
well, about the object that the inputs (JSON) name, and changes nothing: 0, or 1 with what it lacks.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from countersign_target import Credentials, Operation, Outside, SqliteStore, Target
from countersign_target.ready.etag.config import Change, EtagSettings, read_settings
from countersign_target.ready.etag.http import Api
from countersign_target.ready.etag.probing import KEEPS, probe
from countersign_target.ready.etag.target import Etagged
from countersign_target.ready.settings import ConfigurationError
from countersign_target.serving import serve

NAME = "etag-target"
# A try asks the API up to four times: state before, write, state after, and a look at an old try.
CALLS_IN_A_TRY = 4
# What a process left behind that was killed: no try of it is running any more.
LAPSE = "UPDATE countersign_plans SET sending_until = created_at WHERE status = 'sending'"


def target_of(settings: EtagSettings) -> Target:
    """The target that a file describes."""
    service = settings.service
    return Target(
        NAME,
        SqliteStore(settings.store),
        Credentials(app=service.app_token, agent=service.agent_token),
        [_operation(change, settings) for change in settings.changes],
        key_retention_seconds=service.key_retention_seconds,
    )


def _operation(change: Change, settings: EtagSettings) -> Operation:
    etagged = Etagged(change, settings.api, Api(settings.api))
    lease = CALLS_IN_A_TRY * settings.api.total_timeout + 2
    return Operation(
        change.name,
        etagged.plan,
        etagged.apply,
        lifespan=settings.service.lifespan,
        outside=Outside(look=etagged.look, lease_seconds=lease),
    )


@contextmanager
def alone(store: str) -> Iterator[None]:
    """Hold the store for this process: two would take each other's running tries for dead ones."""
    try:
        lock = Path(f"{store}.lock").open("a")  # noqa: SIM115 - held until the process ends
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigurationError("store.path: another process has it") from None
    except OSError as fault:
        raise ConfigurationError(f"store.path: {fault.strerror}") from None
    with lock:
        yield


def main(arguments: list[str] | None = None) -> int:
    """Serve until told to stop; 2 when the file or what it names cannot be used."""
    parser = argparse.ArgumentParser(prog="countersign-etag-target", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--check", action="store_true", help="read the file, and end")
    parser.add_argument("--probe", metavar="INPUTS", type=_object, help="ask the API, and end")
    given = parser.parse_args(arguments)
    try:
        settings = read_settings(given.file)
        if given.probe is not None:
            return _probed(settings, given.probe)
        if given.check:
            print(f"{given.file}: can be used")
        else:
            with alone(settings.store):
                _run(settings)
    except ConfigurationError as error:
        print(f"{given.file}: {error}", file=sys.stderr)
        return 2
    return 0


def _object(text: str) -> dict[str, Any]:
    """The inputs of a probe."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError('must be a JSON object, like \'{"customer_id": "77"}\'')
    return value


def _probed(settings: EtagSettings, inputs: dict[str, Any]) -> int:
    found = dict(probe(settings, inputs))
    for name, words in found.items():
        print(f"{name}: {words}")
    return 0 if all(words == KEEPS for words in found.values()) else 1


def _run(settings: EtagSettings) -> None:
    # The store holds the objects as they were planned from: nobody else's business.
    os.umask(0o077)
    target = target_of(settings)
    with target.store.transaction() as transaction:
        transaction.connection.execute(LAPSE)
    serve(target, settings.service.host, settings.service.port)


if __name__ == "__main__":
    sys.exit(main())
