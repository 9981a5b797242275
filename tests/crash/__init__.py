"""Crawls that are killed on purpose, by seeded schedules, and must lose nothing.

    python -m tests.crash --seeds 200
    python -m tests.crash --seed 17 --keep /tmp/crash-17

A schedule is made from its seed alone: a site (`sites`), settings and kills (`schedules`). The site is served by a
process of its own, whose log is the ground truth. Real crawls run on it, are killed at a named interruption point
(`scrapy_frontier.failpoints`) or by signals at any time, and are resumed until the run is finished (`sessions`). After
each kill and at the end the store is held to the log (`checks`).

Importing Scrapy takes longer than a crawl of a small site. So the harness imports everything once and forks its crawls
(`children`); they are processes as any other, and a kill is a kill. `--spawn` starts each one anew instead.
"""
