"""Otto configures by hand; secrets stay out of sight and every change is in the trail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from audit.actions import Action
from audit.models import Event
from plans import custody
from plans.configuration.permissions import grant_operators
from plans.models import Agent, ApiKey, Attempt, Evidence, Operation, Plan, Replan, Target
from plans.status import Status

pytestmark = pytest.mark.django_db

READ_ONLY = ("plan", "intent", "attempt", "replan", "evidence", "apikey")


@pytest.fixture
def operator(client: Client, otto: User) -> Client:
    grant_operators()
    client.force_login(otto)
    return client


def shown_form(client: Client, address: str) -> dict[str, Any]:
    """What a browser would send if the person pressed Save at once."""
    response: Any = client.get(address)
    assert response.status_code == 200
    form = response.context["adminform"].form
    data = {name: form[name].value() for name in form.fields}
    data = {name: value for name, value in data.items() if value not in (None, False)}
    if isinstance(delays := data.get("retry_delays_seconds"), list):
        data["retry_delays_seconds"] = ",".join(map(str, delays))
    # A field with a computed default carries what was shown in a hidden one.
    data["initial-retry_delays_seconds"] = data.get("retry_delays_seconds")
    data = {name: value for name, value in data.items() if value is not None}
    return data | {"reviewers": [getattr(g, "pk", g) for g in data.get("reviewers", [])]}


def save(client: Client, address: str, **changes: Any) -> Any:
    """Press Save with these fields changed; the form's errors, {} when it was saved."""
    response: Any = client.post(address, shown_form(client, address) | changes)
    if response.status_code == 302:
        return {}
    return dict(response.context["adminform"].form.errors)


def address_of(row: Any) -> str:
    return f"/admin/{row._meta.app_label}/{row._meta.model_name}/{row.pk}/change/"


def test_strangers_meet_the_one_sign_in(client: Client, ada: User) -> None:
    assert client.get("/admin/login/")["Location"].startswith("/accounts/login/")
    client.force_login(ada)
    assert client.get("/admin/login/").status_code == 403


def test_models_are_named_as_people_call_them(operator: Client) -> None:
    page = operator.get("/admin/").content.decode()
    assert ">API keys<" in page
    assert ">Evidence<" in page


def test_operators_see_every_page_and_no_secret(
    operator: Client, admin_client: Client, make_plan: Callable[..., Plan], api_key: str
) -> None:
    plan = make_plan(Status.PENDING)
    Attempt.objects.create(plan=plan, number=1, lease_until=timezone.now())
    Replan.objects.create(intent=plan.intent, cause="person", mode="server")
    secrets = [
        custody.decrypt(plan.token or b"").decode(),
        bytes(plan.token or b"").decode(),
        "billing-token-of-the-tests",
        bytes(plan.target.credential or b"").decode(),
        plan.token_sha256,
        plan.request_sha256,
        api_key,
        ApiKey.objects.get().digest,
    ]
    for client in (operator, admin_client):
        for model in admin.site._registry:
            if model._meta.app_label not in ("plans", "approvals", "audit", "auth"):
                continue
            base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
            rows = [f"{base}{row.pk}/change/" for row in model._default_manager.all()[:2]]
            for address in [base, *rows]:
                response = client.get(address, follow=True)
                assert response.status_code == 200, address
                page = response.content.decode()
                assert not [secret for secret in secrets if secret in page], address


@pytest.mark.parametrize("name", READ_ONLY)
def test_what_verbs_write_is_only_shown(
    admin_client: Client, make_plan: Callable[..., Plan], api_key: str, name: str
) -> None:
    plan = make_plan(Status.PENDING)
    model = apps.get_model("plans", name)
    row = model._default_manager.first() or plan
    assert admin_client.get(f"/admin/plans/{name}/add/").status_code == 403
    assert admin_client.post(address_of(row), {"status": "committed"}).status_code == 403
    assert admin_client.post(f"/admin/plans/{name}/{row.pk}/delete/").status_code == 403


@pytest.mark.parametrize("label", ["audit/event", "audit/era", "approvals/decision"])
def test_the_trail_and_decisions_are_only_shown(admin_client: Client, label: str) -> None:
    assert admin_client.get(f"/admin/{label}/").status_code == 200
    assert admin_client.get(f"/admin/{label}/add/").status_code == 403


def test_deceptive_text_is_written_out(
    admin_client: Client, make_plan: Callable[..., Plan]
) -> None:
    """SEC-13: an override of the reading direction, a tag character and a zero-width space."""
    plan = make_plan()
    Plan.objects.filter(pk=plan.pk).update(
        summary="pay \u202e00.5$", conflict={"changed": "a\U000e0041b"}
    )
    Evidence.objects.create(plan=plan, label="zero\u200bwidth", text="x")
    page = admin_client.get(f"/admin/plans/plan/{plan.pk}/change/").content.decode()
    rows = admin_client.get("/admin/plans/evidence/").content.decode()
    assert "pay ⟨U+202E⟩00.5$" in page
    assert "a⟨U+E0041⟩b" in page
    assert "zero⟨U+200B⟩width" in rows
    assert not {"\u202e", "\U000e0041", "\u200b"} & {*page, *rows}


def test_a_new_base_url_takes_the_credential_away(operator: Client, billing: Target) -> None:
    assert save(operator, address_of(billing), origin="http://127.0.0.1:9001") == {}
    billing.refresh_from_db()
    assert billing.base_url == "http://127.0.0.1:9001"
    assert billing.credential is None
    assert billing.connection_version == 2
    event = Event.objects.get(action=Action.CONFIG_APPLIED)
    assert (event.actor_label, event.target) == ("otto", "billing")
    assert [key["key"] for key in event.details["changed"]] == ["base_url", "credential"]


def test_a_new_credential_is_stored_and_closes_the_circuit(
    operator: Client, billing: Target
) -> None:
    billing.circuit_opened_at = timezone.now()
    billing.save()
    assert save(operator, address_of(billing), new_credential="a-new-token") == {}
    billing.refresh_from_db()
    assert billing.credential is not None
    assert custody.decrypt(billing.credential) == b"a-new-token"
    assert not Target.objects.filter(circuit_opened_at__isnull=False).exists()
    assert "a-new-token" not in str(list(Event.objects.values_list("details", flat=True)))


def test_saving_other_settings_keeps_the_connection(operator: Client, billing: Target) -> None:
    assert save(operator, address_of(billing), fresh_for_seconds=7) == {}
    billing.refresh_from_db()
    assert billing.fresh_for_seconds == 7
    assert billing.credential is not None
    assert billing.connection_version == 1
    event = Event.objects.get(action=Action.CONFIG_APPLIED)
    assert event.details["changed"] == [{"key": "Fresh for seconds"}]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("origin", "http://a@b"),
        ("origin", "ftp://127.0.0.1"),
        ("new_credential", "two words"),
        ("plan_path", "/plans/id"),
        ("plan_path", "/../{plan_id}"),
        ("connect_timeout_seconds", "0"),
        ("retry_delays_seconds", "1,-1"),
        ("min_window_seconds", "90000"),
    ],
)
def test_the_rules_of_the_file_hold_here_too(
    operator: Client, billing: Target, field: str, value: str
) -> None:
    assert list(save(operator, address_of(billing), **{field: value})) == [field]
    assert not Event.objects.exists()


def test_a_plan_in_flight_holds_the_connection(
    operator: Client, billing: Target, make_plan: Callable[..., Plan]
) -> None:
    plan = make_plan(Status.UNKNOWN)
    errors = save(operator, address_of(billing), origin="http://127.0.0.1:9001")
    assert plan.plan_id in str(errors["origin"])
    billing.refresh_from_db()
    assert billing.base_url == "http://127.0.0.1:8001"


def test_a_target_is_made_by_hand(operator: Client) -> None:
    changes = {"name": "iam", "origin": "https://iam.example.com", "new_credential": "iam-token"}
    assert save(operator, "/admin/plans/target/add/", **changes) == {}
    target = Target.objects.get(name="iam")
    assert target.connection_version == 1
    assert custody.decrypt(target.credential or b"") == b"iam-token"


def test_an_operation_is_held_against_the_rules(operator: Client, refund: Operation) -> None:
    errors = save(
        operator,
        address_of(refund),
        formats="{}",
        inputs_schema='{"type": "objekt"}',
        ops="",
        fields="",
        commit_path="commit",
    )
    assert set(errors) == {"commit_path", "inputs_schema"}
    changes = {"formats": "{}", "inputs_schema": "", "ops": "", "fields": "", "risk": "critical"}
    assert save(operator, address_of(refund), **changes) == {}
    refund.refresh_from_db()
    assert (refund.ops, refund.fields, refund.risk) == (None, None, "critical")


def test_a_key_is_revoked_by_hand(operator: Client, api_key: str) -> None:
    key = ApiKey.objects.get()
    data = {"action": "revoke", "_selected_action": [str(key.pk)]}
    assert operator.post("/admin/plans/apikey/", data).status_code == 302
    key.refresh_from_db()
    assert key.revoked_at is not None
    assert Event.objects.get(action=Action.API_KEY_REVOKED).actor_label == "otto"


def test_people_are_edited_and_recorded(operator: Client, charlie: User) -> None:
    group = Group.objects.get_or_create(name="reviewers")[0]
    address = address_of(charlie)
    changes = {"groups": [group.pk], "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    response = operator.post(address, {"username": "charlie", "is_active": "on", **changes})
    assert response.status_code == 302
    assert charlie.groups.get() == group
    event = Event.objects.get(action=Action.CONFIG_APPLIED)
    assert event.details["name"] == "charlie"
    assert {"key": "Groups"} in event.details["changed"]


def test_a_password_set_by_hand_is_recorded(operator: Client, charlie: User) -> None:
    passwords = dict.fromkeys(("password1", "password2"), "correct horse battery staple")
    address = f"/admin/auth/user/{charlie.pk}/password/"
    response = operator.post(address, {"usable_password": "true", **passwords})
    assert response.status_code == 302
    charlie.refresh_from_db()
    assert charlie.check_password("correct horse battery staple")
    event = Event.objects.get(action=Action.CONFIG_APPLIED)
    assert event.details["changed"] == [{"key": "password"}]


def test_an_operator_cannot_become_more(
    operator: Client, otto: User, admin_user: User, support_agent: Agent
) -> None:
    changes = {"username": "otto", "is_active": "on", "is_staff": "on", "is_superuser": "on"}
    dates = {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    operator.post(address_of(otto), {**changes, **dates, "user_permissions": ["1"]})
    otto.refresh_from_db()
    assert not otto.is_superuser
    assert not otto.user_permissions.exists()
    assert operator.post(address_of(admin_user), changes).status_code == 403
    password = {"usable_password": "true", "password1": "a" * 20, "password2": "a" * 20}
    theirs = f"/admin/auth/user/{admin_user.pk}/password/"
    assert operator.post(theirs, password).status_code == 403
    group = Group.objects.get(name="operators")
    held = group.permissions.count()
    operator.post(address_of(group), {"name": "operators", "permissions": ["1"]})
    assert group.permissions.count() == held
