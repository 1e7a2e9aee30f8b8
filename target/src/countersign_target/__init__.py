"""The target's side of Countersign: two functions become dry run, commit and read-back."""

from countersign_target.credentials import (
    AGENT,
    ANYONE,
    APP,
    EITHER,
    ONLY_APP,
    Credentials,
    Identity,
)
from countersign_target.exchanges import Answer, Request
from countersign_target.operations import Operation, Outside, asked_lifespan
from countersign_target.plans import (
    Action,
    Applied,
    NotApplied,
    Outcome,
    PartlyApplied,
    Plan,
    Planned,
    SendAgain,
    State,
    Unknown,
    updates,
)
from countersign_target.problems import (
    Change,
    Conflict,
    Later,
    Problem,
    not_allowed,
    nothing_to_change,
)
from countersign_target.routing import Route
from countersign_target.sqlite import SqliteStore
from countersign_target.stores import Store, StoreAway, Transaction
from countersign_target.target import Target

__all__ = [
    "AGENT",
    "ANYONE",
    "APP",
    "EITHER",
    "ONLY_APP",
    "Action",
    "Answer",
    "Applied",
    "Change",
    "Conflict",
    "Credentials",
    "Identity",
    "Later",
    "NotApplied",
    "Operation",
    "Outcome",
    "Outside",
    "PartlyApplied",
    "Plan",
    "Planned",
    "Problem",
    "Request",
    "Route",
    "SendAgain",
    "SqliteStore",
    "State",
    "Store",
    "StoreAway",
    "Target",
    "Transaction",
    "Unknown",
    "asked_lifespan",
    "not_allowed",
    "nothing_to_change",
    "updates",
]
