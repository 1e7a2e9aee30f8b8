"""What submissions and intents have in common."""

from typing import Any

from plans.enrolment import EvidenceItem
from plans.schemas import EvidenceIn, IntentIn, SubmissionIn


def wish(body: SubmissionIn | IntentIn) -> dict[str, Any]:
    return {
        "target": body.target,
        "operation": body.operation,
        "task_id": body.task_id,
        "inputs": body.inputs.raw,
        "inputs_value": body.inputs.value,
        "summary": body.summary or "",
        "reason": body.reason or "",
    }


def evidence_of(item: EvidenceIn) -> EvidenceItem:
    return EvidenceItem(label=item.label, text=item.text or "", url=item.url or "")
