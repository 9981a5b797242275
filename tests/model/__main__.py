"""`python -m tests.model`: many seeded schedules, or one again."""

from __future__ import annotations

import argparse
import gc
import sys
import time
import traceback
from collections import Counter

from .schedules import play_in_memory


def main() -> int:
    """0 where all schedules held, 1 where one did not; each failing seed is named with the command that repeats it."""
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000, help="how many schedules")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first")
    parser.add_argument("--seed", type=int, help="play this one only, and show its steps")
    options = parser.parse_args()
    if options.seed is not None:
        play_in_memory(options.seed, told=lambda line: print(line, flush=True))
        return 0
    totals: Counter[str] = Counter()
    failed: list[int] = []
    gc.freeze()
    gc.set_threshold(100_000)
    begun = time.monotonic()
    for seed in range(options.first, options.first + options.seeds):
        try:
            totals += play_in_memory(seed)
        except Exception:
            traceback.print_exc()
            failed.append(seed)
            print(f"seed {seed} failed; again: python -m tests.model --seed {seed}", flush=True)
        if sys.stderr.isatty() or (seed + 1) % 500 == 0:
            print(f"\r{seed + 1 - options.first} schedules", end="", file=sys.stderr, flush=True)
    print(f"\n{options.seeds} schedules, {len(failed)} failed, {time.monotonic() - begun:.0f} s")
    for name, count in sorted(totals.items()):
        print(f"{name:32} {count:>12,}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
