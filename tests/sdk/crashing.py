"""A program that will be killed: `python crashing.py URL json|sqlite FOLDER INVOICE`."""

from __future__ import annotations

import sys
from pathlib import Path

from countersign_agent import Guard, HttpTarget
from tests.demo.billing_process import APP_TOKEN
from tests.sdk.programs import PROMISES, STORES


def main(url: str, kind: str, folder: str, invoice: str) -> None:
    """Plan, say so, commit; nothing comes back before it is killed."""
    target = HttpTarget(url, APP_TOKEN, promises=PROMISES)
    task = Guard(None, {"billing": target}, STORES[kind](Path(folder))).task("t")
    planned = task.plan("billing", "refund", {"invoice_id": invoice, "amount_cents": 1_500})
    assert planned.plan is not None
    print(planned.plan.plan_id, flush=True)
    print(task.commit(planned.plan.plan_id).status, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
