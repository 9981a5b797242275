"""The store and the schedule under a model: any order of events, crashes and torn writes, invariants after each step.

`python -m tests.model --seeds 10000` runs seeded schedules; `--seed N` runs one again, and shows its steps.
"""
