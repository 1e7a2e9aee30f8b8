"""Notices as people set them: operators by page or file, each person for herself."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.test import Client

from approvals.models import Channel, Notice, Silence
from approvals.notices import channels
from audit import actors
from audit.models import Event
from audit.sentences import sentence
from plans import custody
from plans.clock import clock
from plans.models import Target
from plans.rekeying import SECRETS
from tests.approvals.mail_server import configure
from tests.approvals.paper_plans import MakePlan

pytestmark = pytest.mark.django_db
URL = "https://93.184.216.34/services/T1/B2/of-the-chat"
PAGE = "/settings/notices/"


@pytest.fixture
def reviewers(ada: User, billing: Target) -> Group:
    return Group.objects.get(name="reviewers")


def post(client: Client, group: Group, what: str, **fields: str) -> Any:
    return client.post(f"{PAGE}{group.pk}/{what}/", fields)


def secrets_in(page: str) -> list[str]:
    return re.findall(r"whsec_[A-Za-z0-9+/=]+", page.replace("&#x2F;", "/"))


def test_an_operator_names_a_webhook_and_sees_its_secret_once(
    client: Client, otto: User, reviewers: Group
) -> None:
    client.force_login(otto)
    answer = post(client, reviewers, "webhook", url=f" {URL} ")
    (secret,) = secrets_in(answer.text)
    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store")
    channel = Channel.objects.get()
    assert custody.decrypt(channel.secret or b"").decode() == secret
    assert custody.decrypt(channel.address or b"").decode() == URL
    event = Event.objects.get(action="config.applied")
    said = str(sentence(event))
    assert said == "otto changed notices reviewers: webhook https://93.184.216.34, secret set"
    page = client.get(PAGE).text
    assert "https://93.184.216.34" in page
    for text in (page, client.get("/settings/").text, str(event.details), str(channel.__dict__)):
        assert "of-the-chat" not in text
        assert secrets_in(text) == []
    assert SECRETS[Channel] == ("address", "secret", "old_secret")


BAD = {
    "": "Write it as",
    "hooks.slack.com": "Write it as",
    "http://93.184.216.34/x": "needs https",
    "https://127.0.0.1/x": "That is this machine",
    "http://127.1": "needs https",
    "https://2130706433/": "four decimal numbers",
    "https://[::ffff:169.254.169.254]/": "address",
    "https://good@evil.example/": "no user name",
    "https://10.0.0.7/x": "private address",
}


@pytest.mark.parametrize("url", BAD)
def test_what_must_not_be_called_is_refused_at_the_form(
    client: Client, otto: User, reviewers: Group, url: str
) -> None:
    client.force_login(otto)
    answer = post(client, reviewers, "webhook", url=url)
    assert answer.status_code == 422
    assert BAD[url] in answer.text
    assert not Channel.objects.exists()


def test_another_address_has_another_secret(reviewers: Group, otto: User) -> None:
    actor = actors.person(otto)
    _, first = channels.name_webhook(reviewers, URL, internal=False, actor=actor)
    channel, second = channels.name_webhook(reviewers, f"{URL}2", internal=False, actor=actor)
    assert first.reveal() != second.reveal()
    assert (channel.secret_number, Channel.objects.count()) == (2, 1)


def test_channels_are_switched_and_what_waits_is_cancelled(
    client: Client, otto: User, reviewers: Group, make_plan: MakePlan
) -> None:
    client.force_login(otto)
    assert post(client, reviewers, "switch", kind="webhook", to="on").status_code == 422
    assert post(client, reviewers, "switch", kind="pigeon", to="on").status_code == 422
    assert post(client, reviewers, "switch", kind="mail", to="on").status_code == 302
    mail = Channel.objects.get()
    row = Notice.objects.create(
        channel=mail, plan=make_plan(), person=otto, moment="waits", next_attempt_at=clock()
    )
    post(client, reviewers, "switch", kind="mail", to="on")
    row.refresh_from_db()
    assert row.status == "waiting"
    post(client, reviewers, "switch", kind="mail", to="off")
    row.refresh_from_db()
    mail.refresh_from_db()
    assert (row.status, mail.on_since, mail.off_reason) == ("cancelled", None, "person")
    assert Event.objects.filter(action="config.applied").count() == 2


def test_the_page_shows_what_was_sent_and_what_fails(
    client: Client, otto: User, ada: User, reviewers: Group, make_plan: MakePlan, settings: Any
) -> None:
    configure(settings, 25)
    channels.switch(reviewers, "mail", True, actor=actors.OPERATOR)
    mail = Channel.objects.get()
    Channel.objects.update(failing_since=clock())
    row = Notice.objects.create(
        channel=mail, plan=make_plan(), person=ada, moment="waits", next_attempt_at=clock(), tries=1
    )
    row.attempts.create(number=1, outcome="not_sent", fault="server: \u202eno")
    client.force_login(otto)
    page = client.get(PAGE).text
    for words in ("failing since", "not sent", "server: ⟨U+202E⟩no", row.plan.plan_id, "127.0.0.1"):
        assert words in page
    assert "1 failing" in client.get("/settings/").text


@pytest.mark.parametrize(
    ("server", "by_mail", "email", "says"),
    [
        (True, True, "ada@example.com", "It goes to <code>ada@example.com</code>"),
        (True, True, "", "Your account has no address"),
        (True, False, "ada@example.com", "An operator has not switched it on for reviewers"),
        (False, True, "ada@example.com", "This server sends no mail yet"),
    ],
)
def test_a_person_sees_whether_mail_comes_and_has_none_of_it(
    client: Client,
    ada: User,
    reviewers: Group,
    settings: Any,
    server: bool,
    by_mail: bool,
    email: str,
    says: str,
) -> None:
    configure(settings, 25)
    settings.SMTP_HOST = "127.0.0.1" if server else None
    if by_mail:
        channels.switch(reviewers, "mail", True, actor=actors.OPERATOR)
    User.objects.filter(pk=ada.pk).update(email=email)
    client.force_login(ada)
    assert says in client.get("/notices/").text
    assert client.post("/notices/mail/", {"to": "off"}).status_code == 302
    assert client.post("/notices/mail/", {"to": "off"}).status_code == 302
    assert Silence.objects.get().person == ada
    assert "You want none." in client.get("/notices/").text
    event = Event.objects.filter(action="config.applied").latest("pk")
    assert str(sentence(event)) == "ada changed notices for ada: mail on → off"
    client.post("/notices/mail/", {"to": "on", "person": "mona"})
    assert not Silence.objects.exists()


# ── as a file ────────────────────────────────────────────────────────────────────────────────

FILE = """
[[people]]
username = "ada"
email = "ada@reviews.example.com"

[[notices]]
group = "reviewers"
mail = true
webhook = "env:REVIEWERS_CHAT"
secret = "env:REVIEWERS_SECRET"
"""
SECRET = "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo="


def apply(folder: Path, text: str, *flags: str) -> str:
    (folder / "config.toml").write_text(text, encoding="utf-8")
    out = StringIO()
    call_command("apply_config", str(folder / "config.toml"), *flags, stdout=out)
    return out.getvalue()


def test_a_file_sets_them_once(
    tmp_path: Path, ada: User, reviewers: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVIEWERS_CHAT", URL)
    monkeypatch.setenv("REVIEWERS_SECRET", SECRET)
    said = apply(tmp_path, FILE)
    assert "~ notices reviewers" in said
    assert 'mail: "off" → "on"' in said
    ada.refresh_from_db()
    assert ada.email == "ada@reviews.example.com"
    webhook = Channel.objects.get(kind="webhook")
    assert custody.decrypt(webhook.secret or b"").decode() == SECRET
    for secret in (URL, SECRET):
        assert secret not in said + str([event.details for event in Event.objects.all()])
    assert "notices" not in apply(tmp_path, FILE)
    assert Channel.objects.filter(on_since__isnull=False).count() == 2
    off = FILE.replace("env:REVIEWERS_CHAT", "").replace('secret = "env:REVIEWERS_SECRET"', "")
    apply(tmp_path, off.replace("mail = true", "mail = false"))
    assert Channel.objects.filter(on_since__isnull=False).count() == 0
    apply(tmp_path, FILE)
    assert Channel.objects.filter(on_since__isnull=False).count() == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('group = "nobody"', 'config.toml:3: notices "nobody": there is no such group'),
        ('group = "reviewers"\nmail = "yes"', "mail must be true or false"),
        ('group = "reviewers"\nwebhook = "hooks"', "webhook must be env:NAME or file:PATH"),
        ('group = "reviewers"\nwebhook = "https://127.0.0.1/"', "webhook: That is this machine"),
        ('group = "reviewers"\nsecret = "env:SHORT"', "not whsec_ and 24 to 64 bytes"),
        ('group = "reviewers"\ninternal = true', "internal stands beside a webhook"),
        ('group = "reviewers"\nchat = "x"', 'unknown key "chat"'),
        ("mail = true", "every notices needs a group"),
    ],
)
def test_a_file_that_cannot_be_meant_changes_nothing(
    tmp_path: Path, reviewers: Group, monkeypatch: pytest.MonkeyPatch, text: str, says: str
) -> None:
    monkeypatch.setenv("SHORT", "whsec_c2hvcnQ=")
    with pytest.raises(CommandError) as refused:
        apply(tmp_path, f"\n\n[[notices]]\n{text}\n")
    assert says in str(refused.value)
    assert not Channel.objects.exists()


def test_an_address_of_a_person_is_one(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="email must be an address like"):
        apply(tmp_path, '[[people]]\nusername = "ada"\nemail = "ada at home"\n')
