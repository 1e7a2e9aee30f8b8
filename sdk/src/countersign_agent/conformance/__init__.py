"""Does a target keep its side of the contract? Asked of a live one, over HTTP.

    countersign-check-target https://billing.example.com --operation refund --inputs refund.json

`check_target` is the same for programs: it takes a `Wire`, so that whoever runs it decides how the
target is reached.
"""

from countersign_agent.conformance.catalogue import CHECKS, NAMES, Check
from countersign_agent.conformance.findings import Report, Result, Verdict
from countersign_agent.conformance.running import check_target
from countersign_agent.conformance.subject import Allowance, MoveFailed, Subject
from countersign_agent.conformance.wire import Call, HttpWire, Who, Wire

__all__ = [
    "CHECKS",
    "NAMES",
    "Allowance",
    "Call",
    "Check",
    "HttpWire",
    "MoveFailed",
    "Report",
    "Result",
    "Subject",
    "Verdict",
    "Who",
    "Wire",
    "check_target",
]
