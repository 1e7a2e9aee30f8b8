"""Passwords from a file are held against the same rules as those that people type."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command

from audit.models import Event

pytestmark = pytest.mark.django_db

ADA = """
[[people]]
username = "dana"
groups = ["reviewers"]

[[people]]
username = "ada"
password = "env:ADA_PASSWORD"
email = "ada.lovelace@example.com"
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "config.toml"
    path.write_text(ADA)
    return str(path)


@pytest.mark.parametrize("options", [(), ("--check",)], ids=["applied", "checked"])
@pytest.mark.parametrize(
    ("password", "reasons"),
    [
        ("pa7Yx", ["too short"]),
        ("iloveyou", ["too common"]),
        ("8402917463", ["entirely numeric"]),
        ("lovelace.example", ["too similar to the email address"]),
        ("123456", ["too short", "too common", "entirely numeric"]),
    ],
)
def test_a_weak_one_is_refused_in_words_and_all_of_the_file_with_it(
    file: str,
    monkeypatch: pytest.MonkeyPatch,
    password: str,
    reasons: list[str],
    options: tuple[str, ...],
) -> None:
    monkeypatch.setenv("ADA_PASSWORD", password)
    with pytest.raises(CommandError) as caught:
        call_command("apply_config", file, *options)
    message = str(caught.value)
    assert message.startswith('config.toml:8: person "ada": password is refused. Th')
    assert [each for each in reasons if each not in message] == []
    assert password not in message
    assert not any(model.objects.exists() for model in (User, Group, Event))


def test_one_that_is_set_already_is_not_judged(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = User.objects.create_user("ada", password="short").password
    monkeypatch.setenv("ADA_PASSWORD", "short")
    call_command("apply_config", file, stdout=(out := StringIO()))
    assert "password" not in out.getvalue()
    assert User.objects.get(username="ada").password == before
