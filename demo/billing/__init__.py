"""The demo's target: invoices and refunds, in a process and a database of its own.

It is built on the kit `countersign-target`, which keeps the target's side of the contract; here
are only the two functions, plan and apply, and what the demo and the tests need beside them.
"""

import sys
from pathlib import Path

# In a checkout the kit is not installed, and lies beside the demo; an installed one wins.
sys.path.append(str(Path(__file__).resolve().parents[2] / "target" / "src"))
