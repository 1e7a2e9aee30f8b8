"""The agent's side of Countersign: client, guard and task state for two-phase writes."""

from countersign_agent.client import AsyncClient, Client
from countersign_agent.documents import as_json, freeze_inputs
from countersign_agent.errors import (
    CountersignError,
    DryRunRefused,
    FingerprintDisagreement,
    InputsChanged,
    Misuse,
    NotConfigured,
    OutcomeUnknown,
    PlanOver,
    PlanReplaced,
    PlanSubmitted,
    Refused,
    StateDamaged,
    StateHeld,
    TargetAway,
    TargetFault,
    TargetMisbehaved,
    TaskOver,
    TokenDisagreement,
    Unanswered,
    UnexpectedAnswer,
    UnknownPlan,
)
from countersign_agent.exchanges import Answer, Exchange, NoAnswer, NotSent
from countersign_agent.guard import AsyncGuard, AsyncGuardedTask, Guard, GuardedTask
from countersign_agent.problems import NextAction, Problem
from countersign_agent.secret import Secret
from countersign_agent.sqlite_store import SqliteStore
from countersign_agent.state import TaskState
from countersign_agent.stores import JsonFileStore, MemoryStore, Store
from countersign_agent.surroundings import Patience
from countersign_agent.targets import (
    AsyncHttpTarget,
    AsyncTarget,
    CommitCall,
    HttpTarget,
    Promises,
    Target,
)
from countersign_agent.views import Outcome, PlanView, TaskEnd, Written

__all__ = [
    "Answer",
    "AsyncClient",
    "AsyncGuard",
    "AsyncGuardedTask",
    "AsyncHttpTarget",
    "AsyncTarget",
    "Client",
    "CommitCall",
    "CountersignError",
    "DryRunRefused",
    "Exchange",
    "FingerprintDisagreement",
    "Guard",
    "GuardedTask",
    "HttpTarget",
    "InputsChanged",
    "JsonFileStore",
    "MemoryStore",
    "Misuse",
    "NextAction",
    "NoAnswer",
    "NotConfigured",
    "NotSent",
    "Outcome",
    "OutcomeUnknown",
    "Patience",
    "PlanOver",
    "PlanReplaced",
    "PlanSubmitted",
    "PlanView",
    "Problem",
    "Promises",
    "Refused",
    "Secret",
    "SqliteStore",
    "StateDamaged",
    "StateHeld",
    "Store",
    "Target",
    "TargetAway",
    "TargetFault",
    "TargetMisbehaved",
    "TaskEnd",
    "TaskOver",
    "TaskState",
    "TokenDisagreement",
    "Unanswered",
    "UnexpectedAnswer",
    "UnknownPlan",
    "Written",
    "as_json",
    "freeze_inputs",
]
