"""The files of the ready targets: what is missing, unknown or unsafe is named, secrets never."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from countersign_target.ready.etag.__main__ import main as etag_main
from countersign_target.ready.etag.config import read_settings as read_etag
from countersign_target.ready.postgres.__main__ import main as postgres_main
from countersign_target.ready.postgres.config import read_settings as read_postgres
from countersign_target.ready.settings import ConfigurationError
from tests.target.ready import etag_files, postgres_files
from tests.target.ready.processes import AGENT_TOKEN, APP_TOKEN, ROOT

type Main = Callable[[list[str]], int]

ETAG = etag_files.file("http://127.0.0.1:1", "plans.sqlite3", settle_by="marker")
POSTGRES = postgres_files.FILE + postgres_files.operation("extend_trial", postgres_files.EXTEND)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {"APP_TOKEN": APP_TOKEN, "AGENT_TOKEN": AGENT_TOKEN, "CUSTOMERS_TOKEN": "secret-one"}
    for name, value in {**secrets, "ACCOUNTS_DATABASE_URL": "postgresql://secret@h/d"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("port = 0", "", "server.port: missing"),
        ("port = 0", "prot = 0", "server.port: missing"),
        ("port = 0", "port = 0\nthreads = 3", "server.threads: is not known here"),
        ("port = 0", "port = true", "server.port: must be int"),
        ("env:APP_TOKEN", "my-own-secret", "app_token: must be env:NAME or file:PATH"),
        ("env:APP_TOKEN", "env:AGENT_TOKEN", "two different tokens"),
        ("env:APP_TOKEN", "env:ABSENT", "app_token: the environment variable ABSENT is not set"),
        ("http://127.0.0.1:1", "ftp://127.0.0.1", "api.base_url"),
        ("http://127.0.0.1:1", "http://ada:pw@127.0.0.1", "api.base_url"),
        ('settle_by = "marker"', "", "api.settle_by: missing"),
        ('settle_by = "marker"', 'settle_by = "hope"', "must be one of idempotency_key"),
        ('marker = "changed_by"', "", "api.marker: missing"),
        ('settle_by = "marker"', 'settle_by = "state"', "api.marker: is for another settle_by"),
        ('marker = "changed_by"', 'marker = "email"', "email lies in email"),
        ('method = "PATCH"', 'method = "POST"', "must be one of PATCH, PUT"),
        ('method = "PATCH"', 'read_only = ["id"]', "read_only: is for PUT"),
        ("/customers/{customer_id}", "/customers/{nobody}", "{nobody} must be an input"),
        ("/customers/{customer_id}", "/customers/{email}", "{email} must be an input that is not"),
        ("/customers/{customer_id}", "/customers/{customer_id", "a brace without its partner"),
        ("/customers/{customer_id}", "/customers?id={customer_id}", "must be a path"),
        ('{ input = "email" }', '{ input = "mail" }', "mail is not declared"),
        ('{ input = "email" }', '{ input = "email", value = 1 }', "say one of input, value"),
        ('{ input = "email" }', '{ input = "email", add = true }', "an input that is an integer"),
        ('"address/city"', '"address"', None),
        ('"address/city"', '"email/home"', "email/home lies in email"),
        ('pattern = "[a-z', 'pattern = "([a-z', "pattern"),
        ('name = "change_customer"', 'name = "Change!"', "operations[1].name"),
    ],
)
def test_a_mistake_in_the_file_of_an_etag_target_is_named(
    tmp_path: Path, before: str, after: str, words: str | None
) -> None:
    assert before in ETAG
    _expect(read_etag, tmp_path, ETAG.replace(before, after, 1), words)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("", "", None),
        ("%(days)s", "%(dais)s", "%(dais)s is no input"),
        ("%(days)s", "%s", "write %(name)s for an input"),
        ("id = %(account_id)s", "id = %s", "write %(name)s for an input"),
        ("UPDATE accounts", "TRUNCATE accounts", "each must begin with one of INSERT"),
        ("UPDATE accounts", "COMMIT; UPDATE accounts", "each must begin with one of INSERT"),
        ('table = "accounts"', 'table = "accounts; DROP"', "is no plain name"),
        ('key = ["id"]', 'key = ["tier"]', "names the row, apart from the columns"),
        ("max_rows = 1", "max_rows = 21", "max_rows: must be 1 to 20"),
        ("days = {", "planned_at = {", "planned_at is the moment of the dry run"),
        ("lock_timeout_ms = 3000", "lock_timeout = 3000", "database.lock_timeout: is not known"),
        ("env:ACCOUNTS_DATABASE_URL", "postgresql://pw@h/d", "database.url: must be env:NAME"),
    ],
)
def test_a_mistake_in_the_file_of_a_postgresql_target_is_named(
    tmp_path: Path, before: str, after: str, words: str | None
) -> None:
    assert before in POSTGRES
    _expect(read_postgres, tmp_path, POSTGRES.replace(before, after, 1), words)


def _expect(read: object, folder: Path, text: str, words: str | None) -> None:
    file = folder / "target.toml"
    file.write_text(text)
    assert callable(read)
    if words is None:
        shown = repr(read(file))
        assert "secret" not in shown
        assert not any(token in shown for token in (APP_TOKEN, AGENT_TOKEN))
        return
    with pytest.raises(ConfigurationError) as caught:
        read(file)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("module", ["etag", "postgres"])
def test_a_file_that_cannot_be_used_ends_the_process_with_words(
    tmp_path: Path, module: str
) -> None:
    file = tmp_path / "target.toml"
    file.write_text("[server\n")
    done = subprocess.run(
        [sys.executable, "-m", f"countersign_target.ready.{module}", str(file), "--check"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "target" / "src")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{file}: Expected ']'")
    assert "Traceback" not in done.stderr


def _asked(capsys: pytest.CaptureFixture[str], main: Main, *arguments: str) -> tuple[int, str]:
    try:
        code: object = main(list(arguments))
    except SystemExit as end:
        code = end.code
    told = capsys.readouterr()
    assert isinstance(code, int)
    return code, told.out + told.err


def test_a_check_says_what_came_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "target.toml"
    assert _asked(capsys, etag_main, str(file)) == (2, f"{file}: No such file or directory\n")
    file.write_text(ETAG)
    assert _asked(capsys, etag_main, str(file), "--check") == (0, f"{file}: can be used\n")
    for inputs in ("x", "[]"):
        code, words = _asked(capsys, etag_main, str(file), "--probe", inputs)
        assert (code, "--probe: must be a JSON object" in words) == (2, True)


def test_a_check_asks_the_database_about_every_statement(
    tmp_path: Path,
    accounts_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ACCOUNTS_DATABASE_URL", accounts_url)
    file = tmp_path / "target.toml"
    file.write_text(POSTGRES)
    assert _asked(capsys, postgres_main, str(file), "--check") == (0, f"{file}: can be used\n")
    wrong = {
        "UPDATE accounts SET nothing = 1": 'statements[1]: column "nothing" of relation',
        "DELETE FROM accounts; COMMIT": "statements[1]: cannot insert multiple commands",
    }
    names = [postgres_files.operation(f"wrong_{n}", each) for n, each in enumerate(wrong)]
    file.write_text(postgres_files.FILE + "".join(names).replace('"tier"', '"teir"'))
    code, words = _asked(capsys, postgres_main, str(file), "--check")
    assert code == 2
    assert [line.split("]: ")[0] for line in words.splitlines()] == [
        f"{file}: operations[{n}].{key}[1" for n in (1, 2) for key in ("covers", "statements")
    ]
    assert all(each in words for each in (*wrong.values(), 'column "teir" does not exist'))


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://ada:pa@ss@127.0.0.1:1/x", "no connection: no server answers there"),
        ("pass=word", "is no address of a database"),
    ],
)
def test_a_database_that_is_not_there_is_told_without_its_address(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    address: str,
    words: str,
) -> None:
    monkeypatch.setenv("ACCOUNTS_DATABASE_URL", address)
    file = tmp_path / "target.toml"
    file.write_text(POSTGRES)
    told = _asked(capsys, postgres_main, str(file))
    assert told == (2, f"{file}: database.url: {words}\n")
