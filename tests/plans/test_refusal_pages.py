"""A refusal as a page: what a person can do next, and the way back."""

from __future__ import annotations

import pytest
from django.test import Client, RequestFactory

from plans.errors import InternalError
from plans.replies import refuse

HOST = "testserver"


def test_it_leads_back_to_the_page_on_which_it_began() -> None:
    sent = RequestFactory(HTTP_HOST=HOST, HTTP_REFERER=f"http://{HOST}/audit/?q=a&x=1")
    page = refuse(sent.post("/audit/verification/"), InternalError()).content.decode()
    assert 'href="/audit/?q=a&amp;x=1"' in page


@pytest.mark.django_db
def test_what_is_not_found_leads_back_too(client: Client) -> None:
    page = client.get("/nowhere/", HTTP_HOST=HOST, HTTP_REFERER=f"http://{HOST}/problems")
    assert 'href="/problems"' in page.content.decode()


@pytest.mark.parametrize(
    "came_from",
    [
        *("", "http://elsewhere.example/audit/", "http://[", "not an address"),
        f"http://{HOST}/audit/verification/",
    ],
)
def test_there_is_no_way_back_to_elsewhere_or_to_itself(came_from: str) -> None:
    sent = RequestFactory(HTTP_HOST=HOST, HTTP_REFERER=came_from)
    page = refuse(sent.post("/audit/verification/"), InternalError()).content.decode()
    assert "Go back" not in page


def test_a_way_back_never_names_another_server() -> None:
    sent = RequestFactory(HTTP_HOST=HOST, HTTP_REFERER=f"http://{HOST}//evil.example/")
    page = refuse(sent.post("/audit/verification/"), InternalError()).content.decode()
    assert 'href="/evil.example/"' in page
