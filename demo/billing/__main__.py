"""`python -m demo.billing`: the target, from its environment, until SIGTERM or Ctrl-C.

`BILLING_PORT` (8001), `BILLING_HOST` (127.0.0.1), `BILLING_DATABASE_URL`, `BILLING_TOKEN`
(the app's: everything), `BILLING_AGENT_TOKEN` (dry runs and reads), `BILLING_PLAN_SECONDS` (600).
"""

import os
import sys

from countersign_target import Credentials
from countersign_target.serving import serve

from .database import open_pool
from .faults import FaultyHandler
from .target import Billing


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
    plan_seconds = int(os.environ.get("BILLING_PLAN_SECONDS", "600"))
    host, port = os.environ.get("BILLING_HOST", "127.0.0.1"), os.environ.get("BILLING_PORT", "8001")
    with open_pool(database_url) as pool:
        billing = Billing(pool, credentials, plan_seconds)
        stopping = billing.faults.stopping
        serve(billing, host, int(port), handler=FaultyHandler, stopping=stopping)
    return 0


if __name__ == "__main__":
    sys.exit(main())
