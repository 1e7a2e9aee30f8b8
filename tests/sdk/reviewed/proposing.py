"""A program that will be killed while it hands a plan over; `TOLD` says everything it needs."""

from __future__ import annotations

import json
import os
from pathlib import Path

from countersign_agent import Client, Guard, HttpTarget, JsonFileStore


def main() -> None:
    url, key, billing, token, folder, task_id, inputs = json.loads(os.environ["TOLD"])
    store = JsonFileStore(Path(folder) / "state.json")
    guard = Guard(Client(url, key, seconds=120), {"billing": HttpTarget(billing, token)}, store)
    guard.task(task_id).propose("billing", "refund", json.loads(inputs))


if __name__ == "__main__":
    main()
