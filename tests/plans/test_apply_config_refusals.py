"""A file with a fault is refused with its place, and nothing of it is stored (7-interfaces)."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command

from audit.models import Event
from plans.models import Target
from tests.plans.config_files import FULL, Apply, refusal

pytestmark = pytest.mark.django_db


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
