"""`python -m demo.agent`: keeps the demo's review queue alive until SIGTERM or Ctrl-C."""

import random
import signal
import sys
import threading
from types import FrameType

import httpx

from demo.credentials import Credentials

from .desk import Desk, Refused

FIRST_CASES = 4
LONGEST_PAUSE = 60.0


def main() -> int:
    """Work until told to stop; 2 when there is no demo to work for."""
    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    try:
        desk = Desk.opened(Credentials.load())
    except FileNotFoundError:
        print("agent: no credentials found; start the demo first (make demo)", file=sys.stderr)
        return 2
    with desk.app, desk.billing:
        work(desk, stopping)
    return 0


def work(desk: Desk, stopping: threading.Event) -> None:
    """One step every 20 to 40 s, the first few at once; a server that is away gets time."""
    done, troubles = 0, 0
    pause = 0.5
    while not stopping.wait(pause):
        try:
            print(f"agent: {desk.step()}", flush=True)
        except (httpx.HTTPError, Refused) as trouble:
            troubles += 1
            backoff = min(LONGEST_PAUSE, 2.0 ** min(troubles, 6))
            pause = max(backoff, getattr(trouble, "retry_after", 0.0))
            # Neither names a body or a header: no token can be in this line.
            print(f"agent: {trouble!r}; again in {pause:.0f} s", flush=True)
        else:
            done, troubles = done + 1, 0
            pause = 1.0 if done < FIRST_CASES else random.uniform(20, 40)


if __name__ == "__main__":
    sys.exit(main())
