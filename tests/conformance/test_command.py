"""The command: its exit codes, what people and programs read, and what it never prints."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from countersign_agent.conformance import CHECKS, NAMES
from countersign_agent.conformance.command import main
from tests.conformance.checking import INPUTS
from tests.conformance.counting import AGENT, APP, Counting
from tests.conformance.faults.conflicts import BareConflict
from tests.conformance.faults.hostile import Shouts
from tests.conformance.faults.tokens import TokenReadBack
from tests.conformance.serving import listening

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {"COUNTERSIGN_TARGET_TOKEN": APP, "COUNTERSIGN_TARGET_AGENT_TOKEN": AGENT}
USUAL = ("--operation", "add", "--inputs", INPUTS.decode(), "--key-retention", "86400")
FAST = ("--only", "dry-run", "--only", "read-back", "--only", "clock")

type Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """The command in this process: exit code, stdout, stderr."""

    def run(*arguments: str, **environment: str) -> tuple[int, str, str]:
        code = main(arguments, environment or ENVIRONMENT)
        printed = capsys.readouterr()
        for secret in (APP, AGENT):
            assert secret not in printed.out + printed.err
        return code, printed.out, printed.err

    return run


@pytest.fixture
def url() -> Iterator[str]:
    with listening(Counting()) as url:
        yield url


def test_a_target_that_conforms_ends_with_0(run: Run) -> None:
    target = Counting()
    short = ("--short-plans", "Plan-Milliseconds: 50")
    move = ("--move-state", 'POST /move {"by": 3}', "--restore-state", 'POST /move {"by": -3}')
    with listening(target) as url:
        code, out, err = run(url, *USUAL, *short, *move, "--commit", "--all")
    assert (code, err) == (0, "")
    assert f"conforms to all of the contract: {len(NAMES)} of {len(NAMES)} checks made" in out
    assert len(re.findall(r"^ok ", out, re.MULTILINE)) == len(NAMES)
    assert target.applied > 3


def test_findings_end_with_1_and_say_what_why_and_how(run: Run) -> None:
    with listening(BareConflict()) as url:
        code, out, _ = run(url, *USUAL, "--commit", "--only", "conflict")
    assert code == 1
    words = " ".join(out.split())
    assert "WRONG conflict A moved world is refused with what changed" in words
    assert "what is wrong The 409 has no `changed` that names at least one path" in words
    assert "why it matters People are asked again" in words
    assert "(T-7)" in words
    assert "how to fix it Answer 409 with" in words
    assert "1 check found something wrong: 1 of 1 check made" in words


def test_without_commit_the_checks_that_apply_plans_are_listed_as_not_run(
    run: Run, url: str
) -> None:
    code, out, _ = run(url, *USUAL)
    assert code == 0
    assert len(re.findall("^not run ", out, re.MULTILINE)) == len(
        [*(each for each in CHECKS if each.commits), "state-moves", "expired"]
    )
    words = " ".join(out.split())
    assert words.count("needs --commit (key-needed, fingerprint-bound, commit, replay") == 1
    assert "conforms as far as it was checked" in words


def test_a_check_that_could_not_be_made_can_be_a_finding(run: Run, url: str) -> None:
    assert run(url, *USUAL, "--only", "commit")[0] == 0
    assert run(url, *USUAL, "--only", "commit", "--all")[0] == 1


def test_the_report_for_programs_is_json(run: Run) -> None:
    with listening(BareConflict()) as url:
        code, out, _ = run(url, *USUAL, "--commit", "--json", "--only", "conflict")
    report = json.loads(out)
    assert code == 1
    assert report["format"] == 1
    assert report["target"] == url
    assert (report["conforms"], report["complete"], report["stopped"]) == (False, True, None)
    assert report["counts"] == {"ok": 0, "look": 0, "wrong": 1, "not_run": 0}
    (check,) = report["checks"]
    assert (check["check"], check["verdict"]) == ("conflict", "wrong")
    assert all(check[name] for name in ("title", "wrong", "requirement", "why", "fix"))


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["table", "json"])
def test_what_a_hostile_target_says_steers_no_terminal_and_repeats_no_secret(
    run: Run, form: tuple[str, ...]
) -> None:
    with listening(Shouts()) as url:
        code, out, _ = run(url, *USUAL, "--commit", *form)
    assert code == 1
    assert "⟨U+001B⟩" in (out if not form else json.loads(out)["checks"][8]["wrong"][0])
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", out)
    assert "\nok      everything" not in out


def test_a_token_that_the_target_repeats_is_not_repeated(run: Run) -> None:
    target = TokenReadBack()
    with listening(target) as url:
        code, out, err = run(url, *USUAL, "--commit")
    assert code == 1
    assert not [plan for plan in target.plans.values() if plan.token in out + err]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "which target?"),
        (("ftp://x",), "the URL is http://"),
        (("http://me:secret-word@127.0.0.1",), "no credentials in the URL"),
        (("http://127.0.0.1",), "which operation?"),
        (("http://127.0.0.1", *USUAL, "--inputs", "[1]"), "--inputs [1]: No such file"),
        (("http://127.0.0.1", *USUAL, "--inputs", '{"a":1,"a":2}'), "strict JSON object"),
        (("http://127.0.0.1", *USUAL, "--credential", "secret-word-1"), "takes env:NAME or file:"),
        (("http://127.0.0.1", *USUAL, "--credential", "env:NOT_SET"), "NOT_SET of the environ"),
        (("http://127.0.0.1", *USUAL, "--credential", "file:/none"), "the file /none cannot be"),
        (("http://127.0.0.1", *USUAL, "--plan-path", "//x"), "begins with one slash"),
        (("http://127.0.0.1", *USUAL, "--short-plans", "no header"), "is one header"),
        (("http://127.0.0.1", *USUAL, "--timeout", "-1"), "--timeout is a number of seconds"),
        (("http://127.0.0.1", *USUAL, "--move-state", "'"), "--move-state: No closing quotation"),
        (("http://127.0.0.1:9", *USUAL), "the target cannot be reached"),
    ],
)
def test_what_cannot_run_ends_with_2_and_says_why(
    run: Run, arguments: tuple[str, ...], says: str
) -> None:
    code, _, err = run(*arguments)
    assert code == 2
    assert says in err
    assert "secret-word" not in err


@pytest.mark.parametrize(
    ("more", "environment", "says"),
    [
        ((), {"COUNTERSIGN_TARGET_TOKEN": "another-credential"}, "does not know the credential"),
        (("--operation", "subtract"), ENVIRONMENT, "no dry run at this address"),
        (("--inputs", "{}"), ENVIRONMENT, "refuses these inputs"),
    ],
)
def test_a_set_up_that_is_wrong_is_no_finding_about_the_target(
    run: Run, url: str, more: tuple[str, ...], environment: dict[str, str], says: str
) -> None:
    usual = ("--operation", "add") if "--inputs" in more else USUAL
    code, _, err = run(url, *usual, *more, **environment)
    assert code == 2
    assert says in err


def test_a_run_that_could_not_be_finished_is_no_clean_one(run: Run, url: str) -> None:
    code, out, err = run(url, *USUAL, "--total", "0.01")
    assert code == 2
    assert "not finished: the time for the whole run was over" in err
    assert "Not finished, because the time for the whole run was over" in " ".join(out.split())


def test_a_credential_may_lie_in_a_file_and_inputs_too(run: Run, url: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{APP}\n")
    (tmp_path / "inputs.json").write_bytes(INPUTS + b"\n")
    named = ("--credential", f"file:{tmp_path / 'token'}")
    inputs = ("--operation", "add", "--inputs", str(tmp_path / "inputs.json"))
    code, out, _ = run(url, *inputs, *named, *FAST, NOTHING="set")
    assert (code, "3 of 3 checks made" in out) == (0, True)


@pytest.mark.parametrize(
    ("command", "lacks"),
    [
        ("true", "changed nothing that this plan is about"),
        ("false", "the command ended with 1"),
        ("/none/at-all", "did not start"),
        ("POST /nowhere {}", "the request was answered 404"),
        ("POST http://127.0.0.1:9/ {}", "the request got no answer"),
    ],
)
def test_a_world_that_does_not_move_is_no_finding(
    run: Run, url: str, command: str, lacks: str
) -> None:
    code, out, _ = run(url, *USUAL, "--only", "state-moves", "--move-state", command)
    assert code == 0
    assert lacks in " ".join(out.split())


def test_the_targets_credential_goes_to_no_other_address(run: Run, url: str) -> None:
    """A hook at a stranger's address carries none: this one answers 401 to nobody."""
    with listening(Counting()) as elsewhere:
        move = ("--move-state", f'POST {elsewhere}/move {{"by": 1}}')
        _, out, _ = run(url, *USUAL, "--only", "state-moves", *move)
    assert "the request was answered 401" in " ".join(out.split())


def test_the_list_says_what_every_check_is_for(run: Run) -> None:
    code, out, _ = run("--list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(NAMES)


def test_the_package_brings_the_command() -> None:
    project = tomllib.loads((ROOT / "sdk" / "pyproject.toml").read_text())["project"]
    where = project["scripts"]["countersign-check-target"]
    assert where == "countersign_agent.conformance.command:main"
    module = where.partition(":")[0]
    done = subprocess.run(
        [sys.executable, "-m", module, "--help"],
        env={"PYTHONPATH": str(ROOT / "sdk" / "src")},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "countersign-check-target" in done.stdout
    assert "2 could not run" in " ".join(done.stdout.split())
