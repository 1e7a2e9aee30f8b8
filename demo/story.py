"""`python -m demo.story [--auto]`: the six steps of the product's story, against the running demo.

Each step prints what happens and checks what it claims; the exit code is 0 when all hold. With
`--auto` Ada approves by the pages' own forms; without it, a person does, in a browser.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable

import httpx

from demo.agent.desk import Refused
from demo.credentials import ROOT, Credentials
from demo.reviewer import PageLacks
from demo.stage import Plan, Stage, Untrue, expect, money, only

WISH = 48_000
MOVED = 20_000
REST = WISH - MOVED
# The app's shortest window is 60 s of life at receipt; what is left of it closes the buttons.
SHORT_WINDOW = 65


def the_conflict(stage: Stage) -> Plan:
    """Steps 1 to 3: a plan, an approval, and a world that had moved."""
    stage.title(1, f"support-agent dry-runs a refund of {money(WISH)} and posts the plan")
    plan = stage.submit(stage.new_invoice(WISH), WISH, "Arrived damaged")
    stage.say(f"plan {plan['plan_id']} expires at {plan['expires_at']}")

    stage.title(2, "Ada reads before -> after and approves; the commit leaves at once")
    stage.move_world(plan, MOVED)
    stage.say(f"(meanwhile another process pays back {money(MOVED)} on the same invoice)")
    clicked = stage.approve(plan)
    dead = stage.wait(plan, lambda now: now["status"] == "conflicted", 60, "a conflict")
    if clicked is not None:
        stage.say(f"the target's answer was here {elapsed_ms(clicked)} ms after the click")
    expect(dead["commit"]["attempts"] == 1, "one attempt was made, with the key stored before it")

    stage.title(3, "the target refused: the world had moved. A re-plan comes by itself")
    conflict = dead["commit"]["conflict"]
    named = [change for change in conflict["changed"] if "refunded_cents" in change["path"]]
    change = only(named, "change named refunded_cents")
    expect((change["planned"], change["current"]) == (0, MOVED), "it names the change")
    expect(bool(conflict["plan_created_at"]), "it names the plan's creation time")
    stage.say(f"{change['path']} moved {change['planned']} -> {change['current']}")
    return stage.successor(dead, "conflicted")


def elapsed_ms(since: float) -> int:
    """Whole milliseconds since a `time.monotonic()`."""
    return round((time.monotonic() - since) * 1000)


def the_second_approval(stage: Stage, plan: Plan) -> None:
    """Step 4: revision 2 is approved and applied; the agent hears it once, the trail verifies."""
    expect(plan["revision"] == 2, "it is revision 2 of the same intent")
    amounts = {a["field"]: (a["from"], a["to"]) for a in plan["actions"]}
    expect(amounts["refunded_cents"] == (MOVED, WISH), f"it refunds {money(REST)} now")
    page = stage.ada.page(plan["plan_id"], "billing")
    expect("280.00" in page and "refunded_cents" in page, "Ada's page says so")

    stage.title(4, "Ada approves revision 2; it is committed")
    stage.approve(plan)
    done = stage.wait(plan, lambda now: now["status"] == "committed", 60, "a commit")
    expect(done["commit"]["result"]["amount_cents"] == REST, f"{money(REST)} were paid back")
    expect(len(stage.effects(plan)) == 1, "the target's ledger has one effect")
    expect(stage.times_told(plan, "committed") == 1, "the agent was told once")
    verify_trail(stage)


def verify_trail(stage: Stage) -> None:
    """The chain of the audit trail holds, by the operator's own command."""
    stage.pause(2.5)  # a seal closes every second
    environment = os.environ | {
        "DATABASE_URL": stage.credentials.database_url,
        "REDIS_URL": str(stage.credentials.raw["redis_url"]),
    }
    command = [sys.executable, "manage.py", "verify_audit"]
    run = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    stage.say("".join((run.stdout.strip() or run.stderr.strip()).splitlines()[-1:]))
    expect(run.returncode == 0, "the audit trail verifies")


def the_lost_answer(stage: Stage, silence: int) -> None:
    """Step 5: the target applies and says nothing; the retry brings the stored result."""
    stage.title(5, "the same with a timeout after the target applied")
    plan = stage.submit(stage.new_invoice(WISH), WISH, "Charged twice")
    stage.arm("apply_then_timeout", silence)
    stage.approve(plan)
    stage.say("the target applies it and stays silent; after 30 s the app asks again, same key")
    done = stage.wait(plan, lambda now: now["status"] == "committed", 120, "a commit")
    expect(done["commit"]["attempts"] >= 2, f"{done['commit']['attempts']} attempts were made")
    effect = only(stage.effects(plan), "effect in the target's ledger")
    same = effect["idempotency_key"] == done["commit"]["idempotency_key"]
    expect(same, "all with one key, and the target's ledger has one effect")
    expect(stage.times_told(plan, "committed") == 1, "success was reported once")


def nobody_at_the_desk(stage: Stage, window: int | None) -> None:
    """Step 6: the plan expires, is re-planned, and the dead one can never be approved."""
    stage.title(6, "the same with nobody at the desk")
    plan = stage.submit(stage.new_invoice(WISH), WISH, "Late delivery", window)
    plan = stage.wait(plan, lambda now: now["status"] == "pending", 30, "a pending plan")
    form = stage.ada.decision_form(stage.ada.page(plan["plan_id"], "billing"))
    left = plan["decide_in_ms"] / 1000
    stage.say(f"nobody decides for {left:.0f} s; please wait")
    dead = stage.wait(plan, lambda now: now["status"] == "expired", left + 30, "an expiry")
    fresh = stage.successor(dead, "expired")
    late = stage.ada.approve(plan["plan_id"], "billing", form)
    expect(late.status_code == 410, f"approving the dead plan is refused: {late.status_code}")
    expect(stage.effects(plan) == [], "nothing was applied")
    stage.end_task(fresh)
    stage.say("the story is over: support-agent ends the task")


def tell(stage: Stage, silence: int, window: int | None) -> None:
    """All six steps, in order."""
    stage.open()
    second = the_conflict(stage)
    the_second_approval(stage, second)
    the_lost_answer(stage, silence)
    nobody_at_the_desk(stage, window)
    print("\nThe story holds.")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m demo.story", description=__doc__)
    parser.add_argument("--auto", action="store_true", help="Ada approves without a person")
    parser.add_argument(
        "--fast-expiry",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="step 6 with a short plan instead of one of ten minutes",
    )
    parser.add_argument(
        "--window", type=int, default=SHORT_WINDOW, help="seconds that the short plan lives"
    )
    parser.add_argument(
        "--silence", type=int, default=35, help="seconds that the target is silent in step 5"
    )
    return parser.parse_args()


def guarded(story: Callable[[], None]) -> int:
    """0 when the story holds; 1 with one plain line when it does not."""
    begun = time.monotonic()
    try:
        story()
    except (Untrue, Refused, PageLacks) as broken:
        print(f"\nThe story broke after {time.monotonic() - begun:.0f} s: {broken}")
        return 1
    except httpx.HTTPError as trouble:
        print(f"\nA server of the demo does not answer: {trouble!r}")
        return 1
    return 0


def main() -> int:
    """Tell the story to the running demo."""
    chosen = arguments()
    try:
        credentials = Credentials.load()
    except FileNotFoundError:
        print("No credentials found. Start the demo first: make demo", file=sys.stderr)
        return 1
    with Stage(credentials, chosen.auto) as stage:
        window = chosen.window if chosen.fast_expiry else None
        return guarded(lambda: tell(stage, chosen.silence, window))


if __name__ == "__main__":
    sys.exit(main())
