"""Policies by file and by hand: the same rules, and every change in the trail (7-interfaces)."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.test import Client

from approvals.models import Decision, Policy
from audit.models import Event
from plans.configuration.permissions import grant_operators
from plans.models import Operation, Plan
from tests.approvals.demanding import approve, policy

pytestmark = pytest.mark.django_db

LARGE = """
[[policies]]
name = "large refunds"
when = 'operation == "refund" && delta.refunded_cents >= 100000'
require = [{ group = "reviewers", count = 2 }]
note_required = true
"""
ALL = """
[[people]]
username = "ada"
groups = ["finance"]

[[policies]]
name = "all of it"
when = '''
risk == "critical" &&
  target == "billing"
'''
require = [{ group = "finance" }]
step_up = true
dwell_seconds = 10
deny = true
raise_risk = "critical"
active = false
"""
type Apply = Callable[..., str]


@pytest.fixture
def apply(tmp_path: Path) -> Apply:
    def run(text: str, *options: str) -> str:
        file, out = tmp_path / "config.toml", StringIO()
        file.write_text(text)
        call_command("apply_config", str(file), *options, stdout=out)
        return out.getvalue()

    return run


def test_it_makes_what_the_file_says(apply: Apply, ada: User) -> None:
    assert apply(LARGE).startswith("+ policy large refunds\n")
    row = Policy.objects.get()
    assert row.when == 'operation == "refund" && delta.refunded_cents >= 100000'
    assert row.require == [{"group": "reviewers", "count": 2}]
    assert (row.note_required, row.active, row.deny) == (True, True, False)
    event = Event.objects.get(action="config.applied", details__kind="policy")
    assert (event.details["name"], event.details["created"]) == ("large refunds", True)
    assert apply(LARGE) == "Nothing to change.\n"


def test_groups_may_be_made_by_the_same_file(apply: Apply) -> None:
    apply(ALL)
    row = Policy.objects.get()
    assert row.when == 'risk == "critical" &&\n  target == "billing"'
    assert row.require == [{"group": "finance", "count": 1}]
    assert (row.dwell_seconds, row.step_up, row.deny) == (10, True, True)
    assert (row.raise_risk, row.active) == ("critical", False)
    assert apply(ALL) == "Nothing to change.\n"


def test_check_stores_nothing_and_says_what_would_change(apply: Apply, ada: User) -> None:
    apply(LARGE)
    with pytest.raises(SystemExit) as status:
        apply(LARGE.replace("count = 2", "count = 3"), "--check")
    assert status.value.code == 2
    assert Policy.objects.get().require[0]["count"] == 2
    assert apply(LARGE, "--check") == "Nothing to change.\n"


def test_a_policy_that_the_file_does_not_name_stays(apply: Apply, ada: User) -> None:
    apply(LARGE)
    apply(LARGE.replace("large refunds", "another"))
    assert Policy.objects.count() == 2


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("when =", "wenn =", ':4: policy "large refunds": unknown key "wenn"; did you mean "when"'),
        ("delta.", "delda.", "when is no CEL condition: line 1, column 31: undeclared reference"),
        ("== ", "= ", ":4: policy"),
        ("delta.refunded_cents >= 100000", '"refund"', "no matching overload"),
        ("when", "#", "a new policy needs when"),
        (
            'group = "reviewers"',
            'group = "reviewer"',
            "names a group that does not exist: reviewer",
        ),
        ("count = 2", "count = 0", ":5: policy"),
        ("count = 2", "count = true", "must be a whole number from 1 to 20"),
        ("count = 2", "number = 2", 'unknown key "number" beside group and count'),
        ("require = [{", "require = [{ group = 'reviewers' }, {", "names a group twice"),
        ("require = [{", "require = ['reviewers', {", "must be a list like"),
        ("note_required = true", "note_required = 1", "must be true or false"),
        ("note_required = true", "dwell_seconds = 601", "whole number from 0 to 600"),
        ("note_required = true", 'raise_risk = "huge"', "raise_risk must be one of"),
        ("large refunds", " ", "must be 1 to 100 printable characters"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(
    apply: Apply, ada: User, before: str, after: str, message: str
) -> None:
    with pytest.raises(CommandError) as refusal:
        apply(LARGE.replace(before, after))
    assert message in str(refusal.value)
    assert not Policy.objects.exists()


# ── By hand ─────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def operator(client: Client, otto: User, ada: User) -> Client:
    grant_operators()
    client.force_login(otto)
    return client


FORM: dict[str, Any] = {
    "name": "large refunds",
    "active": "on",
    "when": 'operation == "refund" &&\r\n  delta.refunded_cents > 0',
    "require": '[{"group": "reviewers", "count": 2}]',
    "dwell_seconds": "0",
    "raise_risk": "",
}
ADD = "/admin/approvals/policy/add/"


def errors_of(response: Any) -> dict[str, list[str]]:
    return dict(response.context["adminform"].form.errors)


def test_an_operator_makes_and_changes_one(operator: Client) -> None:
    assert operator.post(ADD, FORM).status_code == 302
    row = Policy.objects.get()
    assert row.when == 'operation == "refund" &&\n  delta.refunded_cents > 0'
    change = f"/admin/approvals/policy/{row.pk}/change/"
    tighter = FORM | {"require": '[{"group": "reviewers", "count": 3}]', "name": "renamed"}
    assert operator.post(change, tighter).status_code == 302
    row.refresh_from_db()
    assert (row.name, row.require) == ("large refunds", [{"group": "reviewers", "count": 3}])
    assert operator.post(change, tighter).status_code == 302
    made, changed = Event.objects.filter(action="config.applied").order_by("id")
    assert (made.details["created"], changed.details["created"]) == (True, False)
    assert changed.details["changed"] == [
        {
            "key": "require",
            "from": [{"group": "reviewers", "count": 2}],
            "to": [{"group": "reviewers", "count": 3}],
        }
    ]
    assert changed.actor_label == "otto"
    assert operator.get("/admin/approvals/policy/").status_code == 200
    assert operator.post(f"/admin/approvals/policy/{row.pk}/delete/").status_code == 403


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("when", 'operation = "refund"', "line 1, column 11"),
        ("when", "x" * 2001, "2000"),
        ("require", '[{"group": "nobody"}]', "does not exist: nobody"),
        ("require", '[{"group": "reviewers", "count": 99}]', "from 1 to 20"),
        ("require", '{"reviewers": 2}', "must be a list"),
        ("require", "[", "valid JSON"),
        ("dwell_seconds", "700", "from 0 to 600"),
        ("name", "a\u202eb", "printable"),
    ],
)
def test_the_form_has_the_rules_of_the_file(
    operator: Client, field: str, value: str, words: str
) -> None:
    response = operator.post(ADD, FORM | {field: value})
    assert response.status_code == 200
    assert words in str(errors_of(response)[field])
    assert not Policy.objects.exists()


def test_nobody_else_edits_them(client: Client, ada: User, mona: User) -> None:
    for person in (ada, mona):
        client.force_login(person)
        assert client.post(ADD, FORM).status_code in (302, 403)
    assert not Policy.objects.exists()


def test_withdrawn_decisions_are_shown_too(
    operator: Client, make_plan: Callable[..., Plan], refund: Operation, ada: User
) -> None:
    policy("two", "true", require={"reviewers": 2})
    approve(ada, make_plan())
    Decision.objects.update(withdrawn_at="2026-11-29T12:00:00Z")
    page = operator.get("/admin/approvals/decision/").content.decode()
    assert "1 decision" in page
    assert Group.objects.filter(name="reviewers").exists()
