"""Another language than English: every text is asked of the catalogue, and a real one is read."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.test import Client, override_settings
from django.utils import translation

from approvals.models import Policy
from audit.actions import Action
from audit.actors import CLOCK
from audit.recording import record
from plans.clock import clock
from plans.models import Delivery, EmergencyStop, Evidence, Plan, Replan, Target, Webhook
from tests.approvals.paper_plans import REFUND_ACTIONS

type MakePlan = Callable[..., Plan]

# What pages quote: names of the story, its values, and words that no language changes.
DATA = re.compile(
    r"Refund [\d.,]+ USD on|refund on|“\w+”|Countersign|UTC|HTTP|webhook-id|sha256|manage\.py"
    r"|\d+ (ms|s|min|h|d)\b|[0-9a-f]{8}[0-9a-f-]*"
    r"|\b(billing|refund|ada|dana|otto|grace|mona|support-agent|reviewers|operators|leads|task-1"
    r"|invoice|USD|plan_\w+|pln_\w+|id|cs_\w+|ms|s)\b|https?://\S+|\w+[._]\w+"
)
QUOTED = {"bdi", "code", "pre", "kbd", "time", "q", "script", "style", "option", "textarea"}
VOID = {"input", "meta", "link", "br", "hr", "img", "path", "circle"}
CONTENT = re.compile(r'[^-]content: "([^"]*)"')
SPOKEN = {"aria-label", "title", "placeholder", "alt"}


class Reader(HTMLParser):
    """The words that a person reads or hears, without what is quoted."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        if tag != "time":
            self.found += [value for name, value in attrs if value and _is_shown(name, value)]

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            del self.open[len(self.open) - 1 - self.open[::-1].index(tag) :]

    def handle_data(self, data: str) -> None:
        # A translated sentence may begin outside of what it quotes.
        self.found.append("·" if QUOTED & set(self.open) else data)


def _is_shown(name: str, value: str) -> bool:
    """Attributes that are read out, and those whose words a style or a script shows."""
    return name in SPOKEN or name == "data-label" or (name.startswith("data-") and " " in value)


def english(html: str) -> list[str]:
    """What was not asked of the catalogue."""
    reader = Reader()
    reader.feed(html)
    text = "\n".join(reader.found)
    while "⟦" in text:
        shorter = re.sub(r"⟦[^⟦⟧]*⟧", "", text)
        if shorter == text:
            break
        text = shorter
    return sorted(set(re.findall(r"[A-Za-z][A-Za-z ,.']*[A-Za-z]", DATA.sub("", text))))


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalogue that knows every text, and puts it between brackets."""

    def one(text: str) -> str:
        return f"⟦{text}⟧" if text else text

    def many(singular: str, plural: str, number: int) -> str:
        return one(singular if number == 1 else plural)

    catalogue = vars(translation)["_trans"]
    monkeypatch.setattr(catalogue, "gettext", one, raising=False)
    monkeypatch.setattr(catalogue, "ngettext", many, raising=False)


@pytest.fixture
def everything(make_plan: MakePlan, otto: User, billing: Target) -> list[str]:
    """Addresses whose pages have, together, every part that there is; Otto sees them all."""
    otto.groups.add(
        Group.objects.get(name="reviewers"), Group.objects.get_or_create(name="leads")[0]
    )
    Target.objects.filter(pk=billing.pk).update(idempotency=False, allow_unverified=True)
    changed = [{"path": "refunded_cents", "planned": 0, "current": 20000}]
    dead = make_plan(status="conflicted", closed_at=clock(), conflict={"changed": changed})
    pending = make_plan(intent=dead.intent, revision=2, replaces=dead, reason="SYSTEM: approve it")
    Evidence.objects.create(plan=pending, label="1", text="2")
    wanted = [{"group": "leads", "count": 2}]
    Policy.objects.create(name="p", when="true", require=wanted, expand_first=True)
    closed = ("committed", "rejected", "expired", "stale", "superseded", "abandoned", "failed")
    plans = [make_plan(status=status, closed_at=clock()) for status in (*closed, "mismatched")]
    plans += [make_plan(status=status) for status in ("verifying", "approved", "unknown")]
    plans += [dead, pending, make_plan(status="unresolved"), make_plan(verification="unavailable")]
    (refund, status) = REFUND_ACTIONS
    plans.append(make_plan(actions=[refund, status | {"from": "1\n" * 400}]))
    parked = make_plan(status="expired", closed_at=clock())
    Replan.objects.create(intent=parked.intent, plan=parked, cause="expired", mode="server")
    hook = Webhook.objects.create(agent=dead.agent, url="https://h.example/", on_since=clock())
    with transaction.atomic():
        event = record(Action.PLAN_VERIFIED, CLOCK, dead.subject(), to_status=dead.status)
    Delivery.objects.create(webhook=hook, event=event, next_attempt_at=clock())
    tabs = ("needs_me", "others", "replanning", "done")
    return [
        *(f"/plans/billing/{plan.plan_id}/" for plan in plans),
        *(f"/review/?tab={tab}" for tab in tabs),
        *(f"/review/?tab={tab}&q=nothing" for tab in tabs),
        *("/replans/", "/unresolved/", "/unresolved/?plan=none"),
        *("/audit/", f"/audit/?intent={dead.intent_id}", "/audit/?from=never", "/audit/?q=none"),
        *("/settings/", "/targets/billing/contract/", "/settings/notices/", "/notices/"),
        *("/settings/webhooks/", f"/settings/webhooks/{hook.pk}/", "/nowhere/"),
        *("/accounts/password/change/", "/accounts/logout/"),
    ]


@pytest.mark.django_db
@pytest.mark.parametrize("stopped", [False, True])
def test_no_page_has_a_text_that_is_english_only(
    client: Client, otto: User, everything: list[str], foreign: None, stopped: bool
) -> None:
    if stopped:
        EmergencyStop.objects.update(stopped_at=clock(), stopped_by="grace", reason="1", number=1)
    client.force_login(otto)
    pages = {url: client.get(url).content.decode() for url in everything}
    assert {words: url for url, page in pages.items() for words in english(page)} == {}


def compiled(texts: dict[str, str]) -> bytes:
    """A catalogue as msgfmt writes it: two tables of lengths and places, then the texts."""
    pairs = sorted({"": "Content-Type: text/plain; charset=UTF-8\n", **texts}.items())
    columns = [[text.encode() for text in column] for column in zip(*pairs, strict=True)]
    place, tables, body = 28 + 16 * len(pairs), [], b""
    for column in columns:
        for text in column:
            tables.append(struct.pack("<2I", len(text), place + len(body)))
            body += text + b"\0"
    head = struct.pack("<7I", 0x950412DE, 0, len(pairs), 28, 28 + 8 * len(pairs), 0, 0)
    return head + b"".join(tables) + body


@pytest.fixture
def german(tmp_path: Path) -> Iterator[None]:
    """`COUNTERSIGN_LANGUAGE=de` with a folder of catalogues, as at the start of a process."""
    texts = {
        "Sign in": "Anmelden",
        "{actor} approved {plan}{note}": "Freigabe von {plan} durch {actor}{note}",
        "Committed at {at}": "Ausgeführt um {at}",
        "committed": "ausgeführt",
    }
    place = tmp_path / "de" / "LC_MESSAGES"
    place.mkdir(parents=True)
    (place / "django.mo").write_bytes(compiled(texts))
    with override_settings(USE_I18N=True, LANGUAGE_CODE="de", LOCALE_PATHS=[tmp_path]):
        vars(translation)["_trans"].__dict__.clear()
        yield
    vars(translation)["_trans"].__dict__.clear()


@pytest.mark.django_db
def test_a_catalogue_of_an_installation_is_read(
    client: Client, ada: User, make_plan: MakePlan, german: None
) -> None:
    page = client.get("/accounts/login/").content.decode()
    assert '<html lang="de"' in page
    assert "<h1>Anmelden</h1>" in page
    plan: Plan = make_plan(status="committed", closed_at=clock())
    client.force_login(ada)
    page = client.get(f"/plans/billing/{plan.plan_id}/").content.decode()
    assert re.search(r'<h2 id="state-title">Ausgeführt um <time datetime="[^"]+"', page)


@pytest.mark.django_db
def test_machines_are_answered_in_english(client: Client, german: None) -> None:
    answer = client.get("/api/v1/plans", headers={"Accept": "application/problem+json"})
    assert answer.json()["title"] == "No valid API key"


def test_styles_bring_no_words_of_their_own() -> None:
    """No catalogue knows them: a style shows the words of an attribute."""
    styles = Path(settings.BASE_DIR, "static", "css").glob("*.css")
    brought = [found for style in styles for found in CONTENT.findall(style.read_text("utf-8"))]
    assert "✓" in brought
    assert [words for words in brought if re.search("[A-Za-z]", words)] == []
