"""`python -m countersign_agent`, where no script was installed."""

import sys

from countersign_agent.mcp.cli import main

if __name__ == "__main__":
    sys.exit(main())
