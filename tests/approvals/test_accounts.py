"""Local accounts: what people reach of them, in the product's words, and what is switched off."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from allauth.account import urls as stock
from django.contrib.auth.models import User
from django.db import IntegrityError
from django.test import Client
from django.urls import URLPattern, resolve, reverse

from audit.models import Event
from audit.sentences import sentence
from config import refusals
from plans.models import Plan
from tests.plans.refusing_trail import trail_refuses

PASSWORD = "correct horse battery staple"
# What a person of ours may need; all else of allauth is closed.
OPEN = {
    "account_login",
    "account_logout",
    "account_inactive",
    "account_signup",
    "account_reauthenticate",
    "account_change_password",
}
SAMPLES = {"key": "abc-def", "uidb36": "1"}
STOCK_WORDS = ("reauthenticate to safeguard", "Confirm Access", "email address", "username and/or")


@pytest.fixture
def signed_in_ada(client: Client, ada: User) -> Client:
    ada.set_password(PASSWORD)
    ada.save()
    client.force_login(ada)
    return client


def _addresses() -> list[tuple[str, str]]:
    patterns = [p for p in stock.urlpatterns if isinstance(p, URLPattern)]
    return [
        (p.name or "", reverse(p.name or "", kwargs={k: SAMPLES[k] for k in _words(p)}))
        for p in patterns
    ]


def _words(pattern: URLPattern) -> list[str]:
    return re.findall(r"\?P<(\w+)>", str(pattern.pattern)) + list(pattern.pattern.converters)


def test_every_other_page_of_the_library_is_closed(signed_in_ada: Client) -> None:
    closed = [(name, url) for name, url in _addresses() if name not in OPEN]
    assert len(closed) >= 8
    for name, url in closed:
        assert resolve(url).func is refusals.not_found, name
        for method in ("get", "post"):
            assert getattr(signed_in_ada, method)(url).status_code == 404, name
            assert getattr(Client(), method)(url).status_code == 404, name


def test_the_open_ones_are_there(signed_in_ada: Client) -> None:
    found = dict(_addresses())
    assert found.keys() >= OPEN
    for name in OPEN:
        page = signed_in_ada.get(found[name], follow=True)
        assert page.status_code == 200, name
        assert [words for words in STOCK_WORDS if words in page.text] == [], name


@pytest.mark.parametrize(
    ("person", "sees"), [("ada", True), ("charlie", False)], ids=["reviewer", "stranger"]
)
def test_confirming_says_which_plan_waits_and_why(
    client: Client,
    request: pytest.FixtureRequest,
    make_plan: Callable[..., Plan],
    person: str,
    sees: bool,
) -> None:
    plan = make_plan()
    user = request.getfixturevalue(person)
    user.set_password(PASSWORD)
    user.save()
    client.force_login(user)
    there = reverse("plan", args=["billing", plan.plan_id])
    url = f"{reverse('account_reauthenticate')}?next={there}"
    page = client.get(url).text
    assert (plan.title in page) is sees
    assert ("A policy of <bdi>billing</bdi> asks" in page) is sees
    assert (f'<a class="btn" href="{there}">Back to the plan</a>' in page) is sees
    assert "in the last 5 minutes" in page
    form = {"password": "not it", "next": there}
    refused = client.post(reverse("account_reauthenticate"), form).text
    assert "The password is not right." in refused
    assert (plan.title in refused) is sees


@pytest.mark.parametrize("then", ["", "//evil.example/", "/nowhere/", "/review/"])
def test_confirming_without_a_plan_leads_to_the_queue(signed_in_ada: Client, then: str) -> None:
    page = signed_in_ada.get(reverse("account_reauthenticate"), {"next": then}).text
    assert "What you are about to do" in page
    assert 'href="/review/">Back to the queue' in page


def test_nobody_confirms_who_is_not_signed_in(client: Client, db: None) -> None:
    answer = client.get(reverse("account_reauthenticate"))
    assert (answer.status_code, answer["Location"][:16]) == (302, "/accounts/login/")


def test_ones_own_name_leads_to_the_password(signed_in_ada: Client, ada: User) -> None:
    assert 'href="/accounts/password/change/"' in signed_in_ada.get("/review/").text
    new = "another horse and staple"
    form = {"oldpassword": "not it", "password1": new, "password2": new}
    url = reverse("account_change_password")
    assert "The present password is not right." in signed_in_ada.post(url, form).text
    answer = signed_in_ada.post(url, form | {"oldpassword": PASSWORD}, follow=True)
    assert answer.redirect_chain == [("/review/", 302)]
    assert "Your password is changed." in answer.text
    ada.refresh_from_db()
    assert ada.check_password(new)
    event = Event.objects.get()
    assert (event.actor_label, str(sentence(event))) == (
        "ada",
        "ada changed person ada: password set",
    )
    assert new not in str(event.details)


@pytest.mark.django_db(transaction=True)
def test_no_password_changes_without_its_event(signed_in_ada: Client, ada: User) -> None:
    new = "another horse and staple"
    form = {"oldpassword": PASSWORD, "password1": new, "password2": new}
    with trail_refuses("23514", 1), pytest.raises(IntegrityError):
        signed_in_ada.post(reverse("account_change_password"), form)
    ada.refresh_from_db()
    assert ada.check_password(PASSWORD)


def test_who_has_no_password_is_not_led_to_it(client: Client, ada: User) -> None:
    client.force_login(ada)
    assert "password/change" not in client.get("/review/").text


def test_a_wrong_password_is_told_in_the_words_of_the_form(client: Client, ada: User) -> None:
    page = client.post("/accounts/login/", {"login": "ada", "password": "not it"}).text
    assert "User name" in page
    assert "The user name or the password is not right." in page
