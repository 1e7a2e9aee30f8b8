"""What docs/webhooks.md tells receivers, run as it stands there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from audit.models import Event
from plans import delivering, receivers, webhook_messages, webhooks
from plans.custody import Secret

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "webhooks.md").read_text()
BODY = b'{"type":"plan.committed"}'
type Check = Callable[[str, Mapping[str, str], bytes], bool]


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.fixture
def is_genuine() -> Check:
    names: dict[str, Check] = {}
    exec(block("python"), names)
    return names["is_genuine"]


def signed(*secrets: Secret, seconds: int = 0) -> dict[str, str]:
    at = datetime.now(UTC) + timedelta(seconds=seconds)
    return webhook_messages.headers("msg_1", at, BODY, secrets)


def test_the_check_takes_what_is_genuine(is_genuine: Check) -> None:
    secret, other = webhook_messages.new_secret(), webhook_messages.new_secret()
    assert is_genuine(secret.reveal(), signed(secret), BODY)
    for order in ((secret, other), (other, secret)):
        assert is_genuine(secret.reveal(), signed(*order), BODY)


def test_the_check_refuses_the_rest(is_genuine: Check) -> None:
    secret = webhook_messages.new_secret()
    good = signed(secret)
    assert not is_genuine(webhook_messages.new_secret().reveal(), good, BODY)
    assert not is_genuine(secret.reveal(), good, BODY + b" ")
    assert not is_genuine(secret.reveal(), good | {"webhook-id": "msg_2"}, BODY)
    assert not is_genuine(secret.reveal(), good | {"webhook-timestamp": "0"}, BODY)
    assert not is_genuine(secret.reveal(), good | {"webhook-timestamp": "soon"}, BODY)
    assert not is_genuine(secret.reveal(), good | {"webhook-signature": "v1,"}, BODY)
    for seconds in (-400, 400):
        assert not is_genuine(secret.reveal(), signed(secret, seconds=seconds), BODY)


def test_the_example_has_the_members_that_are_sent() -> None:
    example = json.loads(block("json"))
    sent = json.loads(
        webhook_messages.body(Event(pk=1, action="plan.committed", at=datetime.now(UTC)))
    )
    assert (example.keys(), example["data"].keys()) == (sent.keys(), sent["data"].keys())


def test_the_page_tells_the_numbers_of_the_code() -> None:
    told = [0, 5, 5 * 60, 30 * 60, *(hours * 3600 for hours in (2, 5, 10, 14, 20, 24))]
    assert list(delivering.SCHEDULE) == told
    assert "5 seconds, 5 minutes, 30 minutes, 2, 5, 10, 14, 20 and 24 hours" in " ".join(
        PAGE.split()
    )
    assert (webhooks.TOTAL_SECONDS, webhooks.ANSWER_CAP) == (15, 64 * 1024)
    assert receivers.OVERLAP.total_seconds() == 24 * 3600
    assert receivers.MOST_PER_AGENT == 10
