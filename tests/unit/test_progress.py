"""Progress is a bar for those who watch, and a line now and then for a log."""

from __future__ import annotations

import io

from scrapy_frontier.commands.progress import INTERVAL_S, lines, shown


class Terminal(io.StringIO):
    """A stream that somebody watches."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_a_bar_for_each_step_and_is_left_clean() -> None:
    """The step, how much of it is done, and nothing any more at the end."""
    terminal = Terminal()
    with shown(terminal) as progress:
        progress("Reading", 0, 2000)
        progress("Reading", 1500, 2000)
        progress("Adding up", 0, 0)
    written = terminal.getvalue()
    assert "Reading:" in written
    assert "2.00k" in written
    assert "Adding up:" in written
    assert "\n" not in written
    assert written.rstrip("\r").rpartition("\r")[2].strip() == ""


def test_elsewhere_a_line_now_and_then() -> None:
    """A command that is done soon says nothing; one that goes on says how far it is."""
    now = 0.0
    log = io.StringIO()
    progress = lines(log, lambda: now)
    progress("Reading", 500, 2000)
    assert log.getvalue() == ""
    now = INTERVAL_S
    progress("Reading", 1500, 2000)
    progress("Reading", 1600, 2000)
    assert log.getvalue() == "Reading: 1,500 of 2,000, 75 %\n"
    now = 2 * INTERVAL_S
    progress("Adding up", 0, 0)
    assert log.getvalue().endswith("\nAdding up\n")
