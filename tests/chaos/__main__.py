"""`make chaos SEED=n SECONDS=n`: one history at random; exits 1 when an invariant was broken."""

from __future__ import annotations

import argparse
import secrets
import sys

from tests.chaos.run import Outcome, play


def main() -> int:
    """Print the seed first, so that even a run that dies can be played again."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    print(f"seed {given.seed}, {given.seconds:g} s of faults", flush=True)
    outcome = play(given.seed, given.seconds)
    print("\n".join(lines(outcome)), flush=True)
    return 1 if outcome.verdict.findings else 0


def lines(outcome: Outcome) -> list[str]:
    """The figures, one a line; then every finding."""
    found, counted = outcome.verdict, outcome.figures
    met = ", ".join(f"{what} {count}" for what, count in sorted(outcome.met.items()))
    return [
        f"plans              {counted.plans}",
        f"commits            {counted.commits}",
        f"faulted commits    {counted.faulted}",
        f"committed          {counted.committed}",
        f"double applies     {len(found.double_applies)}",
        f"lost approvals     {len(found.lost_approvals)}",
        f"wrong statuses     {len(found.wrong_statuses)}",
        f"without an end     {len(found.stuck)}",
        f"unresolved         {counted.unresolved}",
        f"audit chain        {'broken' if found.broken_chain else 'verifies'}",
        f"time to settle     p50 {counted.p50:.2f} s, p95 {counted.p95:.2f} s",
        f"quiet after        {outcome.quiet_after:.1f} s",
        f"met                {met}",
        *(f"VIOLATION {finding}" for finding in found.findings),
    ]


if __name__ == "__main__":
    sys.exit(main())
