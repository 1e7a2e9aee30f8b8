"""Otto configures with a file: all of it, or nothing (7-interfaces)."""

from __future__ import annotations

import json
import os
import re
from io import StringIO

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command

from audit.actions import Action
from audit.models import Event
from plans import custody
from plans.management.commands.apply_config import Command
from plans.models import Agent, Operation, Target
from tests.plans.config_files import FULL, Apply

pytestmark = pytest.mark.django_db


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
