"""Every check: its name, what it needs, which requirement it is about, why, and how to mend it.

The numbers are those of the contract (T-1 … T-13: the app and the target; SEC: security).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from countersign_agent.conformance import committing, edges, endings, planning, tokens
from countersign_agent.conformance.bench import Bench


@dataclass(frozen=True, slots=True)
class Check:
    """One question to a target. `run` yields what is wrong, and nothing when all is well."""

    name: str
    title: str
    run: Callable[[Bench], Iterator[str]]
    requirement: str
    why: str
    fix: str
    commits: bool = False
    """It applies plans."""


CHECKS: Final = (
    Check(
        "dry-run",
        "A dry run gives a whole plan",
        planning.dry_run,
        "T-1, A-19",
        "A plan that lacks a member, or time to decide, is refused before anybody sees it.",
        "Answer 200 with plan_id, plan_token, expires_at, input_fingerprint, actions, covers and "
        "created_at, fresh for every call; give people 60 s to 24 h.",
    ),
    Check(
        "read-back",
        "A plan reads back as it was planned",
        planning.read_back,
        "T-2",
        "People decide on what your system says, not on what the agent says. Any difference "
        "closes the plan as mismatched.",
        "Store the plan at the dry run and answer GET from that row. Never plan again to read.",
    ),
    Check(
        "key-order",
        "The fingerprint does not depend on the order of names",
        planning.key_order,
        "Input fingerprint",
        "The same wish, written by another JSON library, must not look like another plan.",
        "Hash a canonical form (RFC 8785: names sorted, no spaces), not the bytes of the body.",
    ),
    Check(
        "state-moves",
        "The fingerprint changes when the covered state moves",
        planning.state_moves,
        "Input fingerprint, T-7",
        "The fingerprint is what tells a plan made for another world from a fresh one.",
        "Put every value that the plan was made from into the hash, beside the inputs.",
    ),
    Check(
        "opaque-token",
        "The plan token is random and stays with its holder",
        tokens.opaque,
        "SEC-20, SEC-38",
        "Who has the token may commit. One that can be read, guessed or made walks around review.",
        "32 bytes of a cryptographic generator, in base64url; keep its SHA-256; say it once.",
    ),
    Check(
        "credentials",
        "Nothing answers without a credential",
        edges.credentials,
        "SEC-38",
        "A plan is not a public page, and a commit is nobody's to call.",
        "Check the credential first, before the body is read: 401.",
    ),
    Check(
        "agent-commits",
        "The agent's credential cannot commit",
        edges.agent,
        "SEC-38",
        "An agent that can commit does not need anybody's approval.",
        "Two credentials: the agent's may plan and read, and its commit answers 403 whatever "
        "is in the body.",
    ),
    Check(
        "clock",
        "The clocks agree",
        edges.clock,
        "C-2",
        "Expiry is a time. More than 60 s apart, and the target counts as unhealthy.",
        "Send `Date` with every answer, and keep the machine's clock with NTP.",
    ),
    Check(
        "problems",
        "Refusals are problem documents, and bad input is no 500",
        edges.problems,
        "T-7, RFC 9457",
        "The app acts on status and code. A 500 for bad input leaves an outcome unknown that "
        "was none.",
        "application/problem+json with status, type, title, detail and a code for programs.",
    ),
    Check(
        "sizes",
        "Requests and answers have limits",
        edges.sizes,
        "T-4, SEC-31",
        "One request must not cost as much as a thousand, and the app reads a plan of at most "
        "256 KiB.",
        "Refuse a body over 256 KiB by its length (413), and nesting over 32 levels (400).",
    ),
    Check(
        "key-needed",
        "A commit needs an idempotency key",
        committing.key_needed,
        "T-1",
        "A commit without a key cannot be repeated safely, and somebody will repeat it.",
        "400 when `Idempotency-Key` is missing or malformed, before the plan is looked up.",
        commits=True,
    ),
    Check(
        "fingerprint-bound",
        "Token and fingerprint belong together",
        committing.fingerprint,
        "T-1",
        "The fingerprint says which plan people saw. A commit that ignores it can apply another.",
        "Compare it with the stored plan's and refuse the commit with 422 when they differ.",
        commits=True,
    ),
    Check(
        "commit",
        "A commit applies the plan and says what it did",
        committing.commit,
        "T-6",
        "A success is believed when all of it is there; else the outcome counts as unknown.",
        'Answer 200 {"plan_id", "status": "applied", "result"}; store the result with the plan '
        "and read it back.",
        commits=True,
    ),
    Check(
        "replay",
        "The same key again gets the stored answer",
        committing.replay,
        "T-9",
        "After a lost answer the app sends the same commit again. It must happen once.",
        "Store key and answer in the transaction of the effect; answer from the store with "
        "`Idempotent-Replayed: true`.",
        commits=True,
    ),
    Check(
        "key-reused",
        "The same key with another body is refused",
        committing.key_reused,
        "T-7",
        "A key that answers for another plan tells the app that something happened which did not.",
        "Store a hash of the body with the key; 422 with code idempotency-key-reused when it "
        "differs.",
        commits=True,
    ),
    Check(
        "at-once",
        "Commits at the same moment apply once",
        committing.at_once,
        "T-9, T-12",
        "Retries overlap. Check-then-act without a lock pays twice.",
        "Lock the key and the plan's row before looking at them; 409 in-progress for the others.",
        commits=True,
    ),
    Check(
        "after-apply",
        "An applied plan is used up",
        committing.after_apply,
        "T-7, SEC-3",
        "One approval is one write. And only 409, 410 or 412 make the app look before it "
        "believes a refusal.",
        "409 for every further key of an applied plan.",
        commits=True,
    ),
    Check(
        "conflict",
        "A moved world is refused with what changed",
        endings.conflict,
        "T-7",
        "People are asked again, and told what moved. A 409 without paths proves nothing.",
        'Answer 409 with "changed": [{"path", "planned", "current"}] and plan_created_at; compare '
        "under the lock that the write holds.",
        commits=True,
    ),
    Check(
        "final",
        "A refused plan stays refused",
        endings.final,
        "T-8",
        "`not_applied` lets the app plan again. A late commit of the old plan would be a second "
        "write.",
        "Store the refusal in the transaction that decides it, and answer every later commit "
        "from it; a target that cannot promise this reads back as open.",
        commits=True,
    ),
    Check(
        "expired",
        "A plan past its time reads back as expired",
        endings.expired,
        "T-8",
        "It is how an unknown outcome ends: expired says that nothing will come any more.",
        "Store `expired` before it is said, and keep the plan readable.",
    ),
    Check(
        "expiry",
        "A plan past its time is not applied",
        endings.expiry,
        "T-7, T-9",
        "People approved it for that world, until that moment. Commits travel, and arrive late.",
        "Read the clock after the locks, in the transaction of the effect; 410, for ever.",
        commits=True,
    ),
    Check(
        "key-retention",
        "How long keys are kept is declared, and kept",
        committing.retention,
        "T-9",
        "The app repeats a commit for half of that time and no longer; undeclared, 150 s.",
        "Keep keys in the database, for a day at least, and declare it as key_retention_seconds.",
    ),
)

NAMES: Final = tuple(each.name for each in CHECKS)
