"""Settings come from the environment, or from files that it names."""

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import env


def test_it_reads_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CS_PROBE", "here")
    assert env.optional("CS_PROBE") == "here"
    assert env.text("CS_ABSENT", "fallback") == "fallback"


def test_it_reads_a_secret_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hidden\n")
    monkeypatch.setenv("CS_PROBE_FILE", str(tmp_path / "secret"))
    assert env.optional("CS_PROBE") == "hidden"


def test_it_refuses_a_value_and_a_file_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CS_PROBE", "here")
    monkeypatch.setenv("CS_PROBE_FILE", "/there")
    with pytest.raises(ImproperlyConfigured, match="keep one"):
        env.optional("CS_PROBE")


def test_it_names_the_file_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CS_PROBE_FILE", "/nowhere/secret")
    with pytest.raises(ImproperlyConfigured, match="/nowhere/secret cannot be read"):
        env.optional("CS_PROBE")


@pytest.mark.parametrize(
    ("word", "meaning"),
    [("1", True), ("Yes", True), (" on ", True), ("0", False), ("off", False), ("", False)],
)
def test_it_understands_yes_and_no(
    monkeypatch: pytest.MonkeyPatch, word: str, meaning: bool
) -> None:
    monkeypatch.setenv("CS_PROBE", word)
    assert env.boolean("CS_PROBE") is meaning


@pytest.mark.parametrize("read", [env.boolean, env.integer, env.seconds])
def test_it_does_not_guess(monkeypatch: pytest.MonkeyPatch, read: object) -> None:
    monkeypatch.setenv("CS_PROBE", "perhaps")
    with pytest.raises(ImproperlyConfigured, match="CS_PROBE must be"):
        read("CS_PROBE", 0)  # type: ignore[operator]


def test_it_reads_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CS_PROBE", " a, b ,,c")
    assert env.words("CS_PROBE") == ["a", "b", "c"]
    assert env.words("CS_ABSENT", ["d"]) == ["d"]


def test_it_reads_a_database_address() -> None:
    url = "postgresql://ada:p%40ss@db.example:6432/count%2Fer?sslmode=verify-full"
    assert env.database(url) == {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "count/er",
        "USER": "ada",
        "PASSWORD": "p@ss",
        "HOST": "db.example",
        "PORT": 6432,
    }
    assert env.database_options(url) == {"sslmode": "verify-full"}


@pytest.mark.parametrize("url", ["mysql://host/name", "postgresql://host", "postgresql://host/"])
def test_it_refuses_what_is_no_postgresql(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL must look like"):
        env.database(url)
