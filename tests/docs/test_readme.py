"""The README and its neighbours are true: links, commands, requests and configuration are tried."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.management import call_command, get_commands
from django.test import Client

from config.api import interface
from demo.agent.desk import RESERVED
from demo.billing.seeds import INVOICES
from demo.keepsakes import PEOPLE, Keepsakes
from plans.models import Agent, Operation, Target

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = [README, ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
WRITTEN = [page for page in PAGES if page.name not in {"lifecycle.md", "problems.md"}]
LARGEST_PICTURE = 200_000

of_each_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
of_each_written_page = pytest.mark.parametrize("page", WRITTEN, ids=lambda path: path.name)


def blocks(language: str, path: Path = README) -> list[str]:
    """The fenced code of one language."""
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL)
    return [text for name, text in fences if name == language]


def links(path: Path) -> set[str]:
    """Targets of links and pictures that stay inside the repository."""
    text = path.read_text()
    found = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|srcset)="([^"]+)"', text)
    return {target for target in found if not urlsplit(target).scheme}


def anchors(path: Path) -> set[str]:
    """What a `#fragment` may name: headings as GitHub slugs them, and explicit ids."""
    text = path.read_text()
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", name).strip().lower().replace(" ", "-") for name in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)"', text))


@of_each_page
def test_every_link_leads_to_something(page: Path) -> None:
    for link in links(page):
        name, _, fragment = link.partition("#")
        aim = page.parent / name if name else page
        assert aim.exists(), link
        assert not fragment or fragment in anchors(aim), link


def test_the_pictures_are_small() -> None:
    pictures = [ROOT / link for link in links(README) if link.endswith(".png")]
    assert len(pictures) == 2
    assert all(picture.stat().st_size <= LARGEST_PICTURE for picture in pictures)


@of_each_written_page
def test_every_command_exists(page: Path) -> None:
    text = page.read_text()
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    code = " ".join(re.findall(r"`[^`\n]+`", text) + blocks("sh", page))
    assert set(re.findall(r"\bmake ([a-z][a-z-]*)", code)) <= targets
    assert set(re.findall(r"manage\.py ([a-z_]+)", code)) <= set(get_commands())
    for module in re.findall(r"python -m ([a-z._]+)", code):
        path = module.replace(".", "/")
        places = [ROOT / path, ROOT / "sdk/src" / path, ROOT / "target/src" / path]
        files = [file for at in places for file in (at.with_suffix(".py"), at / "__main__.py")]
        assert any(file.exists() for file in files), module


def test_the_layout_names_every_folder() -> None:
    (tree,) = (block for block in blocks("") if "config/" in block)
    named = set(re.findall(r"(?:^|  )([a-z]+)/ ", tree, re.MULTILINE))
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    folders = {name.split("/")[0] for name in listed.stdout.splitlines() if "/" in name}
    assert named == {folder for folder in folders if not folder.startswith(".")}


# ── Requests ────────────────────────────────────────────────────────────────────────────────
def curls() -> Iterator[list[str]]:
    """The words of every curl, as a shell would split them."""
    for block in blocks("sh"):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("curl "):
                yield shlex.split(line, comments=True)


def after(words: list[str], option: str) -> list[str]:
    return [words[place + 1] for place, word in enumerate(words) if word == option]


def address(words: list[str]) -> str:
    return next(word for word in words[1:] if word.startswith("http"))


def bodies(where: str) -> list[tuple[str, str]]:
    """Address and body of every POST to an address that holds `where`."""
    posts = [words for words in curls() if "-d" in words and where in address(words)]
    return [(address(words), after(words, "-d")[0]) for words in posts]


def headers(words: list[str], **values: str) -> dict[str, str]:
    """The headers of a curl with its `$NAME`s filled in."""
    pairs = (header.split(": ", 1) for header in after(words, "-H"))
    filled = {}
    for name, value in pairs:
        for variable, given in values.items():
            value = value.replace(f"${variable}", given)
        filled[name] = value
    return filled


def test_the_first_request_is_the_one_that_the_demo_prints() -> None:
    source = ast.parse((ROOT / "demo" / "run.py").read_text())
    texts = {node.value for node in ast.walk(source) if isinstance(node, ast.Constant)}
    assert bodies("/intents")[0][1] in texts


@pytest.mark.django_db
def test_every_intent_is_accepted(refund: Operation, api_key: str) -> None:
    posts = [words for words in curls() if "-d" in words and "/intents" in address(words)]
    assert len(posts) == 2
    for words in posts:
        sent = headers(words, KEY=api_key)
        answer = Client().post(
            urlsplit(address(words)).path,
            after(words, "-d")[0],
            content_type=sent.pop("Content-Type"),
            headers=sent,
        )
        assert answer.status_code == 201, answer.content
        assert answer.json()["next_action"] == "wait"


@pytest.mark.django_db
def test_an_intent_is_read_with_a_tag_as_described(refund: Operation, api_key: str) -> None:
    where, body = bodies("/intents")[0]
    client = Client(headers={"Authorization": f"Bearer {api_key}"})
    made = client.post(urlsplit(where).path, body, content_type="application/json")
    path = urlsplit(made.json()["links"]["self"]).path
    (assignment,) = re.findall(r"^INTENT=(\S+)\.\.\.", README.read_text(), re.MULTILINE)
    assert path.startswith(urlsplit(assignment).path)
    first, waiting = (headers(words) for words in curls() if "$INTENT" in words)
    assert set(first) == {"Authorization"}
    read = client.get(path)
    assert read.status_code == 200
    assert (waiting["Prefer"], waiting["If-None-Match"]) == ("wait=25", '"..."')
    assert client.get(path, headers={"If-None-Match": read["ETag"]}).status_code == 304


def test_the_invoices_are_in_the_demo_and_left_alone_by_its_agent() -> None:
    wanted = {json.loads(body)["inputs"]["invoice_id"] for _, body in bodies("/intents")}
    ((moved, _),) = bodies("/external_refund")
    assert {*wanted, urlsplit(moved).path.split("/")[2]} == RESERVED
    assert {str(number) for number, *_ in INVOICES} >= RESERVED


def test_the_credentials_are_where_it_looks_for_them(tmp_path: Path) -> None:
    home = tmp_path / ".demo"
    home.mkdir()
    (home / "secrets.json").write_text("{}")
    keepsakes = Keepsakes(home)
    keepsakes.keep_api_key("cs_key")
    names = ("base_url", "billing_url", "database_url", "redis_url")
    keepsakes.write_credentials(dict.fromkeys(names, ""))
    found = [
        subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.strip()
        for code in re.findall(r"^[A-Z]+=\$\(\S+ -c '(.+)'\)$", README.read_text(), re.MULTILINE)
    ]
    assert found == ["cs_key", keepsakes.kept["billing_token"]]
    assert all(f"`{person}`" in README.read_text() for person in PEOPLE)


# ── Configuration ───────────────────────────────────────────────────────────────────────────
@pytest.mark.django_db
@pytest.mark.parametrize("text", blocks("toml"))
def test_the_configuration_can_be_applied(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in re.findall(r"env:([A-Z_]+)", text):
        monkeypatch.setenv(name, f"{name}-of-the-tests")
    file = tmp_path / "ledger.toml"
    file.write_text(text)
    with pytest.raises(SystemExit) as left:
        call_command("apply_config", str(file), "--check")
    assert left.value.code == 2
    call_command("apply_config", str(file))
    assert Target.objects.get().operations.count() == 1
    call_command("apply_config", str(file), "--check")
    call_command("create_api_key", Agent.objects.get().name)


def test_there_is_a_configuration_to_read() -> None:
    assert len(blocks("toml")) == 1


# Read from the environment, and no operator's to set.
NO_SETTINGS = {"PATH", "TEST_DATABASE_NAME"}
READS = re.compile(
    r"\b(?:(?:optional|text|boolean|integer|seconds|words|path)\(|environ(?:\.get\(|\[))"
    r"""['"]([A-Z][A-Z_]+)['"]"""
)


def test_the_table_of_settings_is_what_the_code_reads() -> None:
    """Without more it is a promise nobody keeps, with less a setting that nobody finds."""
    table = (ROOT / "docs" / "operations.md").read_text().partition("\n## Settings\n")[2]
    rows = re.findall(r"^\| (`[A-Z].*?) \|", table.partition("\n## ")[0], re.MULTILINE)
    names = re.findall(r"`([A-Z_]+)`", " ".join(rows))
    parts = ("config", "audit", "plans", "approvals")
    files = [path for part in parts for path in (ROOT / part).rglob("*.py")]
    read = {name for path in files for name in READS.findall(path.read_text())}
    assert len(names) == len(set(names)) > 10
    assert set(names) == read - NO_SETTINGS


# ── The REST interface ──────────────────────────────────────────────────────────────────────
API = ROOT / "docs" / "api.md"


def test_the_table_of_endpoints_is_the_interface() -> None:
    rows = re.findall(r"^\| `(GET|POST) (/\S+)` \|", API.read_text(), re.MULTILINE)
    paths: dict[str, Any] = interface.get_openapi_schema()["paths"]
    served = {
        (method.upper(), path.removeprefix("/api/v1"))
        for path, methods in paths.items()
        for method in methods
    }
    assert len(rows) == len(served)
    assert set(rows) == served


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "example"), [*zip(("intents", "plans"), blocks("json", API), strict=True)]
)
def test_its_examples_are_accepted(
    path: str, example: str, refund: Operation, api_key: str
) -> None:
    body = json.loads(example)
    if "plan" in body:
        soon = datetime.now(UTC) + timedelta(minutes=10)
        body["plan"]["expires_at"] = soon.strftime("%Y-%m-%dT%H:%M:%SZ")
    answer = Client().post(
        f"/api/v1/{path}",
        body,
        content_type="application/json",
        headers={"Authorization": f"Bearer {api_key}"},
    )
    assert answer.status_code == 201, answer.content
