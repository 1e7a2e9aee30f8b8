"""Otto configures with a file: all of it, or nothing (7-interfaces)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command

from audit.actions import Action
from audit.models import Event
from plans import custody
from plans.management.commands.apply_config import Command
from plans.models import Agent, Operation, Target

pytestmark = pytest.mark.django_db

FULL = """
[[people]]
username = "ada"
groups = ["reviewers"]
password = "env:ADA_PASSWORD"

[[people]]
username = "dana"
groups = ["reviewers", "leads"]

[[people]]
username = "otto"
groups = ["operators"]

[[targets]]
name = "billing"
base_url = "http://127.0.0.1:8001"
internal = true
credential = "file:billing.token"
plan_path = "/plans/{plan_id}"
allow_unverified = false
idempotency = true
key_style = "bare"
key_retention_seconds = 86400
enforces_expiry = true
consumed_plans_readable = true
connect_timeout_seconds = 5
read_timeout_seconds = 30
total_timeout_seconds = 45
retry_delays_seconds = [0.5, 3, 9, 20]
unknown_deadline_seconds = 900
min_window_seconds = 60
max_window_seconds = 86400
fresh_for_seconds = 120
reviewers = ["reviewers"]

[[targets.operations]]
name = "refund"
title = "Refund {delta.refunded_cents:money:USD} on {object}"
asked = "{inputs.amount_cents:money:USD}"
reversible = false
formats = { refunded_cents = "money:USD" }
dry_run_path = "/refund/dry_run"
commit_path = "/refund/commit"
replan = "server"
risk = "high"
inputs_schema = "refund.inputs.json"
result_schema = "refund.result.json"
ops = ["update"]
fields = ["refunded_cents", "status"]

[[agents]]
name = "support-agent"
owner = "dana"
pending_cap = 50
rate_limit_per_minute = 600
"""

type Apply = Callable[..., str]


@pytest.fixture
def apply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Apply:
    """`apply(text, *options)` writes the file, runs the command and returns what it printed."""
    monkeypatch.setenv("ADA_PASSWORD", "a password of Ada's")
    (tmp_path / "billing.token").write_text("billing-token-one\n")
    (tmp_path / "refund.inputs.json").write_text('{"type": "object"}')
    (tmp_path / "refund.result.json").write_text('{"type": "object", "minProperties": 1}')

    def run(text: str, *options: str) -> str:
        file = tmp_path / "config.toml"
        file.write_text(text)
        out = StringIO()
        call_command("apply_config", str(file), *options, stdout=out)
        return out.getvalue()

    return run


def refusal(apply: Apply, text: str) -> str:
    with pytest.raises(CommandError) as caught:
        apply(text)
    return str(caught.value)


def test_it_makes_what_the_file_says(apply: Apply) -> None:
    apply(FULL)
    ada, otto = User.objects.get(username="ada"), User.objects.get(username="otto")
    assert ada.check_password("a password of Ada's")
    assert [group.name for group in ada.groups.all()] == ["reviewers"]
    assert not ada.is_staff
    assert otto.is_staff
    assert not otto.is_superuser
    billing = Target.objects.get()
    assert billing.credential is not None
    assert custody.decrypt(billing.credential) == b"billing-token-one"
    assert billing.retry_delays_seconds == [0.5, 3, 9, 20]
    assert [group.name for group in billing.reviewers.all()] == ["reviewers"]
    operation = Operation.objects.get(target=billing)
    assert operation.formats == {"refunded_cents": "money:USD"}
    assert operation.result_schema == {"type": "object", "minProperties": 1}
    assert operation.fields == ["refunded_cents", "status"]
    assert Agent.objects.get().owner.username == "dana"


def test_a_second_run_changes_nothing(apply: Apply) -> None:
    apply(FULL)
    before = Event.objects.count()
    assert apply(FULL) == "Nothing to change.\n"
    assert apply(FULL, "--check") == "Nothing to change.\n"
    assert Event.objects.count() == before
    assert Target.objects.get().connection_version == 1


def test_check_exits_with_2_and_stores_nothing(apply: Apply) -> None:
    with pytest.raises(SystemExit) as caught:
        apply(FULL, "--check")
    assert caught.value.code == 2
    told = Command().create_parser("manage.py", "apply_config").format_help().split()
    assert "exit 2 if anything would" in " ".join(told)
    assert not any(model.objects.exists() for model in (User, Group, Target, Event))


def test_a_new_row_is_told_with_every_key_of_the_file(apply: Apply) -> None:
    defaults = Operation()
    assert (defaults.replan, defaults.risk, defaults.reversible) == ("server", "high", False)
    printed = apply(FULL)
    (operation,) = re.findall(r"^\+ operation .*\n((?:    .*\n)+)", printed, re.MULTILINE)
    (written,) = re.findall(r"\[\[targets.operations\]\]\n(.*?)\n\n", FULL, re.DOTALL)
    given = {line.partition(" = ")[0] for line in written.splitlines()} - {"name"}
    assert {line.strip().partition(":")[0] for line in operation.splitlines()} == given
    for line in ('replan: "server"', 'risk: "high"', "reversible: false"):
        assert f"    {line}\n" in operation


def test_it_reads_a_file_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADA_PASSWORD", "a password of Ada's")
    reading, writing = os.pipe()
    os.write(writing, b'[[people]]\nusername = "ada"\npassword = "env:ADA_PASSWORD"\n')
    os.close(writing)
    call_command("apply_config", f"/dev/fd/{reading}", stdout=StringIO())
    os.close(reading)
    assert User.objects.get().check_password("a password of Ada's")


def test_it_says_what_changed(apply: Apply) -> None:
    apply(FULL)
    printed = apply(FULL.replace("fresh_for_seconds = 120", "fresh_for_seconds = 0"))
    assert printed == "~ target billing\n    fresh_for_seconds: 120 → 0\n"


def test_every_change_is_in_the_trail_without_secrets(apply: Apply) -> None:
    apply(FULL)
    events = Event.objects.filter(action=Action.CONFIG_APPLIED).order_by("id")
    assert [(e.details["kind"], e.details["name"]) for e in events] == [
        ("person", "ada"),
        ("person", "dana"),
        ("person", "otto"),
        ("group", "operators"),
        ("target", "billing"),
        ("operation", "billing.refund"),
        ("agent", "support-agent"),
    ]
    assert {e.actor_label for e in events} == {"an operator at the terminal"}
    target = events[4]
    assert target.target == "billing"
    assert {"key": "credential", "words": "set"} in target.details["changed"]
    written = json.dumps([e.details for e in events])
    assert "billing-token-one" not in written
    assert "a password of Ada's" not in written


def test_what_the_file_does_not_name_is_left_alone(apply: Apply) -> None:
    apply(FULL)
    apply('[[targets]]\nname = "billing"\nfresh_for_seconds = 60\n[[people]]\nusername = "ada"\n')
    billing = Target.objects.get()
    assert billing.fresh_for_seconds == 60
    assert billing.plan_path == "/plans/{plan_id}"
    assert billing.credential is not None
    assert custody.decrypt(billing.credential) == b"billing-token-one"
    assert billing.connection_version == 1
    assert Operation.objects.count() == 1
    assert User.objects.get(username="ada").groups.count() == 1


def test_a_list_replaces_the_stored_list(apply: Apply) -> None:
    apply(FULL)
    apply(
        '[[people]]\nusername = "dana"\ngroups = ["auditors"]\n'
        '[[people]]\nusername = "otto"\ngroups = []\n'
        '[[targets]]\nname = "billing"\nreviewers = ["payments"]\nretry_delays_seconds = []\n'
    )
    dana = User.objects.get(username="dana")
    assert [group.name for group in dana.groups.all()] == ["auditors"]
    assert not User.objects.get(username="otto").is_staff
    billing = Target.objects.get()
    assert [group.name for group in billing.reviewers.all()] == ["payments"]
    assert billing.retry_delays_seconds == []
    assert Group.objects.filter(name="leads").exists()


def test_an_operator_gets_what_the_admin_asks_for(apply: Apply) -> None:
    apply(FULL)
    otto = User.objects.get(username="otto")
    assert otto.has_perms(["plans.change_target", "auth.add_user", "audit.view_event"])
    assert not otto.has_perm("plans.change_plan")
    assert not otto.has_perm("plans.delete_target")
    assert not User.objects.get(username="ada").has_perm("plans.view_target")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", 'config.toml:1: unknown table "x"'),
        ("\n[[target]]\nname = 1", 'config.toml:2: unknown table "target"; did you mean "targets"'),
        ("[people]\nusername = 1", "config.toml:1: people must be written as [[people]]"),
        ("[[policies]]\nname = 'x'", 'config.toml:1: policy "x": a new policy needs when'),
        ("[[agents]]\nowner = 'ada'", "config.toml:1: every agent needs a name"),
        (
            FULL.replace('plan_path = "', 'plan_pth = "'),
            'config.toml:20: target "billing": unknown key "plan_pth"; did you mean "plan_path"?',
        ),
        (
            FULL.replace('risk = "high"', 'risk = "huge"'),
            'config.toml:46: operation "refund": risk must be one of low, medium, high, critical',
        ),
        (
            FULL.replace('owner = "dana"', 'owner = "nobody"'),
            'config.toml:54: agent "support-agent": owner nobody is nobody here',
        ),
        (
            FULL.replace("env:ADA_PASSWORD", "env:NOT_SET_ANYWHERE"),
            'config.toml:5: person "ada": password names the environment variable NOT_SET_ANYWHERE',
        ),
        (
            FULL.replace("file:billing.token", "file:missing.token"),
            'config.toml:19: target "billing": credential names a file that cannot be read',
        ),
        (FULL.replace("internal = true\n", ""), "config.toml:17: target"),
        (FULL.replace("http://127.0.0.1:8001", "http://a@b"), "base_url is refused"),
        (FULL.replace("[0.5, 3, 9, 20]", "[\n0.5,\n-1]"), "config.toml:30: target"),
        (FULL.replace("min_window_seconds = 60", "min_window_seconds = 90000"), "min_window"),
        (FULL.replace('base_url = "http://127.0.0.1:8001"', ""), "a new target needs base_url"),
        (FULL.replace('commit_path = "/refund/commit"', ""), "a new operation needs commit_path"),
        (FULL.replace("/refund/commit", "/../commit"), "commit_path must be a path"),
        (FULL.replace("{plan_id}", "{id}"), "plan_path must hold {plan_id} once"),
        (FULL.replace('username = "dana"', 'username = "ada"'), 'person "ada" stands here twice'),
        ('[[people]]\nusername = "a"\nusername = "b"', "config.toml:3: Cannot overwrite a value"),
        ("[[people]]\nusername = [", "config.toml:"),
        ("internal = tru", "config.toml:1: Invalid value"),
    ],
)
def test_it_refuses_with_line_and_name_and_stores_nothing(
    apply: Apply, text: str, message: str
) -> None:
    assert message in refusal(apply, text)
    assert not any(model.objects.exists() for model in (User, Group, Target, Event))


def test_it_names_every_fault_at_once(apply: Apply) -> None:
    text = FULL.replace("reversible = false", "reversible = 0").replace("idempotency", "idem")
    assert len(refusal(apply, text).splitlines()) == 2


@pytest.mark.parametrize("key", ["password", "credential"])
def test_a_secret_in_the_file_itself_is_refused_and_not_repeated(apply: Apply, key: str) -> None:
    row = '[[people]]\nusername = "ada"\n' if key == "password" else '[[targets]]\nname = "b"\n'
    message = refusal(apply, f'{row}{key} = "hunter2-hunter2"')
    assert "must be env:NAME or file:PATH" in message
    assert "hunter2" not in message


@pytest.mark.parametrize("token", ["", "\n", "two words", "naïve", "a\r\nHost: evil"])
def test_it_refuses_a_credential_that_cannot_be_sent(
    apply: Apply, tmp_path: Path, token: str
) -> None:
    (tmp_path / "odd.token").write_text(token, newline="")
    assert "credential names" in refusal(apply, FULL.replace("billing.token", "odd.token"))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("[]", "is no JSON object"),
        ('{"type": "objekt"}', "is no valid JSON Schema"),
        ('{"type": "object", "type": "array"}', "is no JSON object"),
        ('{"$schema": "http://json-schema.org/draft-07/schema#"}', "2020-12"),
        ('{"$ref": "http://127.0.0.1:1/other.json"}', "refers to another document"),
    ],
)
def test_it_refuses_an_invalid_schema(
    apply: Apply, tmp_path: Path, schema: str, message: str
) -> None:
    (tmp_path / "odd.json").write_text(schema)
    refused = refusal(apply, FULL.replace("refund.inputs.json", "odd.json"))
    assert 'operation "refund": inputs_schema' in refused
    assert message in refused


@pytest.mark.parametrize("missing", ["no such file.toml", "."])
def test_it_says_when_the_file_cannot_be_read(missing: str) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("apply_config", missing)
