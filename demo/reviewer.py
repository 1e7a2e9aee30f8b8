"""A person at the browser, for a demo that runs without one: the pages' own forms, nothing else."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

import httpx


@dataclass
class Form:
    """One form of a page: where it goes, and the fields that it carries by itself."""

    action: str
    name: str = ""
    fields: dict[str, str] = field(default_factory=dict)


class FormReader(HTMLParser):
    """Collects the forms of a page, with inputs that name their form from outside of it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self._open: Form | None = None
        self._outside: list[tuple[str, str, str]] = []
        self.feed(page)
        for owner, name, value in self._outside:
            for form in self.forms:
                if form.name == owner:
                    form.fields[name] = value

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a form, or a field of one."""
        values = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._open = Form(values.get("action", ""), values.get("id", ""))
            self.forms.append(self._open)
        elif tag == "input" and values.get("name"):
            self._note(values)

    def _note(self, values: dict[str, str]) -> None:
        # A typed confirmation says what it expects: a person copies it by hand.
        value = values.get("data-confirm") or values.get("value", "")
        if "form" in values:
            self._outside.append((values["form"], values["name"], value))
        elif self._open is not None:
            self._open.fields[values["name"]] = value

    def handle_endtag(self, tag: str) -> None:
        """Leave the form."""
        if tag == "form":
            self._open = None

    def carrying(self, name: str) -> Form | None:
        """The first form with a field of that name."""
        return next((form for form in self.forms if name in form.fields), None)


class PageLacks(Exception):
    """A page came without the form that it should have."""


class Reviewer:
    """Somebody signed in: reads plan pages and decides by their form (7-interfaces, Browser)."""

    def __init__(self, base_url: str) -> None:
        self.browser = httpx.Client(base_url=base_url, timeout=30, trust_env=False)

    def sign_in(self, name: str, password: str) -> None:
        """Sign in by the page at `/accounts/login/`; PageLacks when that does not succeed."""
        path = "/accounts/login/"
        form = self._form(self.browser.get(path), "login")
        answer = self.browser.post(path, data=form.fields | {"login": name, "password": password})
        if not answer.is_redirect:
            raise PageLacks(f"{name} could not sign in: {answer.status_code}")

    def page(self, plan_id: str, target: str) -> str:
        """The plan's page, as text."""
        answer = self.browser.get(f"/plans/{target}/{plan_id}/")
        if answer.status_code != 200:
            raise PageLacks(f"the page of {plan_id} answered {answer.status_code}")
        return answer.text

    def decision_form(self, page: str) -> Form:
        """The decision form that `page` shows, with the digest of what is on the screen."""
        form = FormReader(page).carrying("shown_digest")
        if form is None:
            raise PageLacks("the page offers no decision")
        return form

    def approve(self, plan_id: str, target: str, form: Form) -> httpx.Response:
        """Press Approve: 303 on success."""
        said = {"verdict": "approve", "note": "Checked against the invoice."}
        path = f"/plans/{target}/{plan_id}/decision/"
        return self.browser.post(path, data=form.fields | said)

    def _form(self, answer: httpx.Response, name: str) -> Form:
        form = FormReader(answer.text).carrying(name)
        if form is None:
            raise PageLacks(f"{answer.url.path} answered {answer.status_code} without its form")
        return form
