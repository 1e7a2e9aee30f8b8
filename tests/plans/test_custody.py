"""Secrets stay secret (A-2, A-18, BI-27, SEC-20, SEC-34, SEC-35)."""

import copy
import json
import pickle
from collections.abc import Iterator
from datetime import UTC, datetime
from string import printable
from typing import Any
from uuid import UUID

import pytest
from cryptography.fernet import Fernet, InvalidToken
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from plans import custody, errors
from plans.custody import Secret, check_token, find_token, mask, redact_event
from plans.errors import Problem
from plans.strict_json import JsonValue

TOKEN = 'tok_9f2c/"quoted"\\4412'
OLD, NEW, OTHER = (Fernet.generate_key().decode() for _ in range(3))


@pytest.fixture(autouse=True)
def _keyring() -> Iterator[None]:
    with override_settings(ENCRYPTION_KEYS=[OLD]):
        yield


def test_what_is_encrypted_can_be_read_back_and_not_seen() -> None:
    blob = custody.encrypt(TOKEN.encode())
    assert TOKEN.encode() not in blob
    assert custody.decrypt(blob) == TOKEN.encode()
    assert custody.decrypt(memoryview(blob)) == TOKEN.encode()


def test_a_new_first_key_encrypts_and_the_old_one_still_reads() -> None:
    old = custody.encrypt(b"secret")
    with override_settings(ENCRYPTION_KEYS=[NEW, OLD]):
        assert custody.decrypt(old) == b"secret"
        rotated = custody.rotate(old)
    with override_settings(ENCRYPTION_KEYS=[NEW]):
        assert custody.decrypt(rotated) == b"secret"
    with override_settings(ENCRYPTION_KEYS=[OTHER]), pytest.raises(InvalidToken):
        custody.decrypt(rotated)


@pytest.mark.parametrize(
    ("token", "problem"),
    [
        # BI-27
        (None, errors.MissingField),
        ("", errors.InvalidField),
        ("   ", errors.InvalidField),
        (7, errors.InvalidField),
        (True, errors.InvalidField),
        (["tok_long_enough_1"], errors.InvalidField),
        ("tok_line\r\nX-Evil: 1", errors.InvalidField),
        ("tok_line\n", errors.InvalidField),
        ("tok_tab\there", errors.InvalidField),
        ("tök_not_ascii", errors.InvalidField),
        ("tok_del\x7f", errors.InvalidField),
        ("t" * 16_385, errors.StringTooLong),
        ("t" * 1_000_000, errors.StringTooLong),
    ],
)
def test_it_refuses_a_token_that_is_none(token: object, problem: type[Problem]) -> None:
    with pytest.raises(problem) as refusal:
        check_token(token, "/plan/plan_token")
    assert refusal.value.status == 422
    assert refusal.value.errors[0].pointer == "/plan/plan_token"
    assert "tok_" not in str(refusal.value)


@pytest.mark.parametrize("token", ["t", TOKEN, "a b~!", "t" * 16_384])
def test_it_takes_a_printable_token(token: str) -> None:
    assert check_token(token, "") == token


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"summary": f"use {TOKEN} to commit"}, "/summary"),
        ({"evidence": [{"label": "x"}, {"a/b~": TOKEN}]}, "/evidence/1/a~1b~0"),
        ({"plan": {"extra": {f"x{TOKEN}": 1}}}, "/plan/extra"),
        ({TOKEN: 1}, ""),
        (TOKEN, ""),
        ({"inputs": json.dumps({"t": TOKEN})}, "/inputs"),
        ({"inputs": '{"t":"' + "".join(f"\\u{ord(c):04X}" for c in TOKEN) + '"}'}, "/inputs"),
        ({"inputs": r'{"t":"tok_9f2c\/\"quoted\"\\4412"}'}, "/inputs"),
        ({"plan": {"plan_token": TOKEN}}, None),
        ({"plan": {"plan_token": TOKEN}, "plan_token": TOKEN}, "/plan_token"),
        ({"plan": {"plan_token": {"x": TOKEN}}}, "/plan/plan_token/x"),
        ({"summary": TOKEN[:-1], "n": [1, None, True, 2.5]}, None),
    ],
)
def test_it_finds_a_token_wherever_it_hides(value: JsonValue, place: str | None) -> None:
    assert find_token(value, TOKEN, allowed="/plan/plan_token") == place


def test_a_short_token_is_not_searched_for() -> None:
    assert find_token({"summary": "eleven_char"}, "eleven_char") is None
    assert find_token({"summary": "twelve_chars"}, "twelve_chars") == "/summary"
    assert mask("eleven_char", ["eleven_char", ""]) == "eleven_char"


def test_it_masks_a_token_in_values_names_and_texts() -> None:
    value: JsonValue = {
        "detail": f"unknown token {TOKEN}.",
        TOKEN: [TOKEN, 1, None, {"raw": json.dumps({"t": TOKEN})}],
        "kept": "tok_9f2c",
    }
    assert mask(value, [TOKEN]) == {
        "detail": "unknown token [token removed].",
        "[token removed]": ["[token removed]", 1, None, {"raw": '{"t": "[token removed]"}'}],
        "kept": "tok_9f2c",
    }


def test_of_two_secrets_the_longer_is_masked_first() -> None:
    short, long = "secret_of_12", "secret_of_12_and_more"
    assert mask(f"{long} {short}", [short, long]) == "[token removed] [token removed]"


@given(st.text(printable[:95], min_size=12), st.text(), st.text(), st.booleans())
def test_a_masked_text_never_holds_the_token(
    token: str, before: str, after: str, escaped: bool
) -> None:
    text = before + (json.dumps(token)[1:-1] if escaped else token) + after
    assert find_token(text, token) == ""
    masked = mask(text, [token])
    assert token not in masked or token in before + custody.REMOVED + after


def test_a_secret_shows_itself_only_when_asked() -> None:
    secret = Secret("hunter2")
    assert [repr(secret), str(secret), f"{secret}", f"{secret!r:>9}", f"{secret:>20}"] == [
        "[secret]",
        "[secret]",
        "[secret]",
        " [secret]",
        "[secret]",
    ]
    assert secret.reveal() == "hunter2"
    assert secret == Secret("hunter2") != Secret("hunter3")
    assert secret != "hunter2"
    assert len({secret, Secret("hunter2")}) == 1
    assert secret
    assert not Secret("")


@pytest.mark.parametrize("leak", [pickle.dumps, copy.deepcopy, json.dumps])
def test_a_secret_is_not_serialised(leak: Any) -> None:
    with pytest.raises(TypeError):
        leak(Secret("hunter2"))


def test_an_api_key_has_a_public_id_and_256_random_bits() -> None:
    key_id, secret, full = custody.new_api_key()
    assert full == f"cs_{key_id}_{secret}"
    assert len(bytes.fromhex(secret)) * 8 == 256
    assert custody.api_key_id(full) == key_id
    assert custody.new_api_key() != custody.new_api_key()
    assert secret not in custody.api_key_digest(full)
    assert custody.keys_equal(custody.api_key_digest(full), custody.api_key_digest(full))
    assert not custody.keys_equal(custody.api_key_digest(full), custody.api_key_digest(secret))


@pytest.mark.parametrize(
    "text",
    ["", "cs_", "cs_0123456789abcdef_", "Bearer x", "cs_é_ü", "cs_0123456789abcdef_zz", "\ud800"],
)
def test_what_cannot_be_a_key_has_no_id(text: str) -> None:
    assert custody.api_key_id(text) is None
    assert not custody.keys_equal(text, "x")


def test_the_digest_of_a_token_is_its_sha256() -> None:
    assert custody.token_digest("abc") == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )


API_KEY = "cs_0123456789abcdef_" + "ab" * 32


@pytest.mark.parametrize(
    ("event", "logged"),
    [
        ({"event": f"key {API_KEY} used"}, {"event": "key [api key] used"}),
        ({"headers": {"Authorization": "Bearer x.y"}}, {"headers": {"Authorization": "[secret]"}}),
        ({"event": "sent Bearer x.y-z, ok"}, {"event": "sent Bearer [secret], ok"}),
        ({"plan_token": "t"}, {"plan_token": "[secret]"}),
        ({"body": [{"plan_token": "t", "n": 1}]}, {"body": [{"plan_token": "[secret]", "n": 1}]}),
        (
            {"body": '{"plan_token": "t\\"x", "n": 1}'},
            {"body": '{"plan_token": [secret], "n": 1}'},
        ),
        ({"e": r'"{\"plan_token\":\"a\",\"n\":1}"'}, {"e": r'"{\"plan_token\":[secret],\"n\":1}"'}),
        ({"body": '{"plan_token": "cut o'}, {"body": '{"plan_token": [secret]'}),
        ({"body": b'{"plan_token":"tok"}'}, {"body": '{"plan_token":[secret]}'}),
        ({"e": "{'plan_token': 'tok', 'n': 1}"}, {"e": "{'plan_token': [secret], 'n': 1}"}),
        ({"query": "plan_token=tok&n=1"}, {"query": "plan_token=[secret]&n=1"}),
        ({"e": ValueError("Bearer tok")}, {"e": "ValueError('Bearer [secret]')"}),
        ({"secret": None, "n": 1.5, "ok": True}, {"secret": None, "n": 1.5, "ok": True}),
        ({"event": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, {"event": "[secret]"}),
        (
            {"plan_id": "pln_1", "text": "token expired"},
            {"plan_id": "pln_1", "text": "token expired"},
        ),
    ],
)
def test_a_log_line_shows_no_secret(event: dict[str, Any], logged: dict[str, Any]) -> None:
    assert redact_event(None, "info", event) == logged


def test_other_objects_are_logged_as_they_are() -> None:
    event = {"at": datetime(2026, 3, 14, tzinfo=UTC), "id": UUID(int=7)}
    assert redact_event(None, "info", dict(event)) == event
