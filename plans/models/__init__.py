"""The rows of a plan's life, a module per noun."""

from plans.models.agents import Agent, ApiKey
from plans.models.attempts import Attempt
from plans.models.contract_runs import ContractRun
from plans.models.deliveries import Delivery, DeliveryAttempt, ToldUpTo, Webhook
from plans.models.evidence import Evidence
from plans.models.intents import Intent
from plans.models.plans import Plan
from plans.models.replans import Replan
from plans.models.switches import EmergencyStop
from plans.models.targets import Operation, Target
from plans.models.tasks import Task, Write
from plans.models.vitals import CountedUpTo, Counter, Heartbeat, TargetHealth

__all__ = [
    "Agent",
    "ApiKey",
    "Attempt",
    "ContractRun",
    "CountedUpTo",
    "Counter",
    "Delivery",
    "DeliveryAttempt",
    "EmergencyStop",
    "Evidence",
    "Heartbeat",
    "Intent",
    "Operation",
    "Plan",
    "Replan",
    "Target",
    "TargetHealth",
    "Task",
    "ToldUpTo",
    "Webhook",
    "Write",
]
