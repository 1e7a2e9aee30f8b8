"""`python -m demo.billing`: the target, from its environment, until SIGTERM or Ctrl-C.

`BILLING_PORT` (8001), `BILLING_HOST` (127.0.0.1), `BILLING_DATABASE_URL`, `BILLING_TOKEN`
(the app's: everything), `BILLING_AGENT_TOKEN` (dry runs and reads), `BILLING_PLAN_SECONDS` (600).
"""

import os
import signal
import sys
import threading
from types import FrameType

from .credentials import Credentials
from .database import open_pool
from .routes import Billing
from .server import Server


def main() -> int:
    """Serve until told to stop; 2 when the environment lacks something."""
    try:
        credentials = Credentials(
            app=os.environ["BILLING_TOKEN"], agent=os.environ["BILLING_AGENT_TOKEN"]
        )
        database_url = os.environ["BILLING_DATABASE_URL"]
    except KeyError as missing:
        print(f"billing: {missing.args[0]} is not set", file=sys.stderr)
        return 2
    except ValueError as error:
        print(f"billing: BILLING_TOKEN and BILLING_AGENT_TOKEN: {error}", file=sys.stderr)
        return 2
    billing = Billing(
        pool=open_pool(database_url),
        credentials=credentials,
        plan_seconds=int(os.environ.get("BILLING_PLAN_SECONDS", "600")),
    )
    host, port = os.environ.get("BILLING_HOST", "127.0.0.1"), os.environ.get("BILLING_PORT", "8001")
    serve(billing, (host, int(port)))
    return 0


def serve(billing: Billing, address: tuple[str, int]) -> None:
    """Answer requests on `address` until `billing.stopping` is set by a signal."""

    def stop(number: int, frame: FrameType | None) -> None:
        billing.stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    with Server(address, billing) as server, billing.pool:
        threading.Thread(target=server.serve_forever, args=[0.1], daemon=True).start()
        print(f"billing listens on http://{server.server_name}:{server.server_port}", flush=True)
        billing.stopping.wait()
        server.shutdown()


if __name__ == "__main__":
    sys.exit(main())
