"""The command line's options, and what they come to. A secret is never one of them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from countersign_agent.conformance.catalogue import NAMES
from countersign_agent.conformance.moving import read_mover
from countersign_agent.conformance.subject import RUN_SECONDS, WAIT_SECONDS, Allowance, Subject
from countersign_agent.conformance.wire import HttpWire
from countersign_agent.documents import NotStrict, read_object
from countersign_agent.secret import Secret

CALL_SECONDS: Final = 10.0
APP_TOKEN: Final = "COUNTERSIGN_TARGET_TOKEN"
AGENT_TOKEN: Final = "COUNTERSIGN_TARGET_AGENT_TOKEN"
_VISIBLE: Final = re.compile(r"[\x21-\x7e]+", re.ASCII)
_HEADER: Final = re.compile(r"([A-Za-z0-9-]+):\s*([\x20-\x7e]*)", re.ASCII)


class Refused(Exception):
    """The options are not enough to run, or wrong. The message holds no secret."""


@dataclass(frozen=True, slots=True)
class Setting:
    """All that a run needs."""

    name: str
    subject: Subject
    wire: HttpWire
    allowance: Allowance
    only: tuple[str, ...]

    @property
    def in_clear(self) -> bool:
        """Whether the credentials leave this machine without TLS."""
        parts = urlsplit(self.name)
        return parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1")


def parser(program: str, about: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program,
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"Credentials: by default {APP_TOKEN} and {AGENT_TOKEN} of the environment. "
        "Exit codes: 0 conforms, 1 findings, 2 could not run.",
    )
    _add_checks(parser)
    _add_target(parser.add_argument_group("how the target is called"))
    _add_world(parser.add_argument_group("time, and a world that moves"))
    return parser


def _add_checks(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("url", nargs="?", metavar="URL", help="the target's base URL")
    add("--operation", metavar="NAME", help="the operation to check, like refund")
    add(
        "--inputs",
        action="append",
        default=[],
        metavar="JSON|FILE",
        help="inputs of the dry run; again for further wishes, tried when one is true already: "
        "two to go to and fro, or about ten where each can be granted once",
    )
    add("--commit", action="store_true", help="apply plans, too: the inputs really happen")
    add("--json", action="store_true", help="the report for programs")
    add("--only", action="append", choices=NAMES, metavar="CHECK", help="this check; repeatable")
    add("--all", action="store_true", help="exit 1 when a check could not be made")
    add("--list", action="store_true", help="say what is checked, and why")


def _add_target(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--credential", metavar="env:NAME|file:PATH", help="the app's: plans, reads, commits")
    add("--agent-credential", metavar="env:NAME|file:PATH", help="the agent's: cannot commit")
    add("--dry-run-path", default="/{operation}/dry_run", metavar="PATH", help="(%(default)s)")
    add("--commit-path", default="/{operation}/commit", metavar="PATH", help="(%(default)s)")
    add("--plan-path", default="/plans/{plan_id}", metavar="PATH", help="(%(default)s)")
    add("--key-style", choices=("bare", "sf-string"), default="bare", help="(%(default)s)")
    add("--key-retention", type=float, metavar="SECONDS", help="how long it says it keeps keys")


def _add_world(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--move-state",
        metavar="'METHOD URL BODY'|COMMAND",
        help="changes what a plan covers; without it another plan is applied for that",
    )
    add("--restore-state", metavar="'METHOD URL BODY'|COMMAND", help="undoes one --move-state")
    add(
        "--short-plans",
        metavar="'NAME: VALUE'",
        help="a header that makes the dry run's plan expire within seconds",
    )
    add("--wait", type=float, default=WAIT_SECONDS, help="for a plan to expire (%(default)s s)")
    add("--timeout", type=float, default=CALL_SECONDS, help="of one call (%(default)s s)")
    add("--total", type=float, default=RUN_SECONDS, help="of the whole run (%(default)s s)")


def read(options: argparse.Namespace, environment: Mapping[str, str]) -> Setting:
    """What the options come to. Refused says what is missing or wrong."""
    url = _url(options.url)
    if not options.operation:
        raise Refused("which operation? --operation NAME")
    wire = HttpWire(
        url,
        _secret(options.credential or f"env:{APP_TOKEN}", environment, "--credential"),
        _agent(options.agent_credential, environment),
        seconds=_positive(options.timeout, "--timeout"),
    )
    moves = {
        name: _mover(getattr(options, f"{name}_state"), wire, f"--{name}-state")
        for name in ("move", "restore")
    }
    allowance = Allowance(
        commits=options.commit,
        move=moves["move"],
        restore=moves["restore"],
        wait_seconds=_positive(options.wait, "--wait"),
        run_seconds=_positive(options.total, "--total"),
    )
    return Setting(url, _subject(options), wire, allowance, tuple(options.only or NAMES))


def _subject(options: argparse.Namespace) -> Subject:
    return Subject(
        operation=options.operation,
        inputs=[_inputs(each) for each in options.inputs] or [b"{}"],
        dry_run_path=_path(options.dry_run_path, "--dry-run-path"),
        commit_path=_path(options.commit_path, "--commit-path"),
        plan_path=_path(options.plan_path, "--plan-path"),
        key_style=options.key_style,
        key_retention_seconds=options.key_retention,
        short_plans=_header(options.short_plans),
    )


def _url(text: str | None) -> str:
    if not text:
        raise Refused("which target? Its base URL, like https://billing.example.com")
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise Refused("the URL is http:// or https://, a host, and perhaps a path")
    if parts.username or parts.password:
        raise Refused("no credentials in the URL: --credential takes env:NAME or file:PATH")
    return text.rstrip("/")


def _inputs(text: str) -> bytes:
    """The bytes that are sent: as they stand in the file, or as typed."""
    try:
        raw = text.encode() if text.lstrip().startswith("{") else Path(text).read_bytes()
        read_object(raw)
    except OSError as fault:
        raise Refused(f"--inputs {text}: {fault.strerror}") from None
    except NotStrict:
        raise Refused("--inputs is a strict JSON object, or a file that holds one") from None
    return raw.strip()


def _agent(named: str | None, environment: Mapping[str, str]) -> Secret | None:
    if named is None and AGENT_TOKEN not in environment:
        return None
    return _secret(named or f"env:{AGENT_TOKEN}", environment, "--agent-credential")


def _secret(named: str, environment: Mapping[str, str], option: str) -> Secret:
    kind, _, where = named.partition(":")
    if kind == "env":
        text = environment.get(where, "")
        missing = f"{where} of the environment is empty"
    elif kind == "file":
        try:
            text = Path(where).read_text()
        except (OSError, UnicodeDecodeError):
            text = ""
        missing = f"the file {where} cannot be read, or is empty"
    else:
        # What was typed may be the secret itself: it is not repeated.
        raise Refused(f"{option} takes env:NAME or file:PATH, so that no list of processes has it")
    text = text.strip()
    if not text:
        raise Refused(f"{option}: {missing}")
    if not _VISIBLE.fullmatch(text):
        raise Refused(f"{option}: a credential is printable ASCII without spaces")
    return Secret(text)


def _mover(text: str | None, wire: HttpWire, option: str) -> Callable[[], None] | None:
    if text is None:
        return None
    try:
        return read_mover(text, wire)
    except ValueError as fault:
        raise Refused(f"{option}: {fault}") from None


def _path(text: str, option: str) -> str:
    if not re.fullmatch(r"/(?!/)[\x21-\x7e]*", text, re.ASCII):
        raise Refused(f"{option} begins with one slash and has no spaces")
    return text


def _header(text: str | None) -> dict[str, str]:
    if text is None:
        return {}
    found = _HEADER.fullmatch(text.strip())
    if found is None:
        raise Refused("--short-plans is one header, like 'Plan-Seconds: 5'")
    return {found[1]: found[2]}


def _positive(number: float, option: str) -> float:
    if not 0 < number <= 86_400:
        raise Refused(f"{option} is a number of seconds from 0 to 86400")
    return number
