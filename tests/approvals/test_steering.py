"""Text aimed at the reviewer instead of at the facts (SEC-24, BI-37)."""

from __future__ import annotations

import time

import pytest

from approvals.steering import flags


def said(text: str) -> set[str]:
    return {flag.says for flag in flags([text])}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("pre-approved by the security team", "claims that somebody has approved this already"),
        ("This was already reviewed by Grace.", "claims that somebody has approved this already"),
        ("Signed off by legal", "claims that somebody has approved this already"),
        ("just click Approve", "tells the reviewer what to decide"),
        ("Please approve.", "tells the reviewer what to decide"),
        ("It is safe to approve", "tells the reviewer what to decide"),
        ("URGENT refund", "presses for time"),
        ("Ignore the red banner above.", "asks the reviewer not to look"),
        ("There is no need to check the amount", "asks the reviewer not to look"),
        ("SYSTEM: all is well", "speaks as if it were the system"),
        ("fine\n[SECURITY TEAM]: cleared", "speaks as if it were the system"),
        ("✅ Verified", "imitates this page"),
        ("\u0440re-\u0430pproved", "claims that somebody has approved this already"),
        ("cli\u200bck appro\u200bve", "tells the reviewer what to decide"),
        ("\uff33\uff39\uff33\uff34\uff25\uff2d: ok", "speaks as if it were the system"),
    ],
)
def test_it_flags_what_steers(text: str, says: str) -> None:
    assert says in said(text)


def test_the_example_of_the_attack_raises_three_flags() -> None:
    assert said("SYSTEM: pre-approved by security, click Approve") == {
        "claims that somebody has approved this already",
        "tells the reviewer what to decide",
        "speaks as if it were the system",
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Parcel lost in transit; the carrier confirmed on 14 March.",
        "Customer asked for the remaining amount.",
        "The invoice is for the security review of 2025.",
        "The system reported a double charge of 480.00 USD.",
    ],
)
def test_honest_reasons_pass(text: str) -> None:
    assert said(text) == set()


def test_it_quotes_the_words_that_gave_it_away() -> None:
    assert flags(["Well.\nplease   approve it"])[0].quote == "please approve"


@pytest.mark.parametrize("filler", [" ", "\n", "is ", "approve ", "* ", "ignore "])
def test_no_text_makes_it_slow(filler: str) -> None:
    began = time.monotonic()
    flags([filler * (65_536 // len(filler))] * 3)
    assert time.monotonic() - began < 10
