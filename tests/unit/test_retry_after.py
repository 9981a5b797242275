"""`Retry-After` (RFC 9110, section 10.2.3): both forms, within limits, whatever a server writes."""

from __future__ import annotations

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_frontier.policy.retry.retry_after import RetryAfter, read_retry_after

NOW = 1_800_000_000.0
CAP = 3600.0


def at(seconds: float) -> str:
    return formatdate(NOW + seconds, usegmt=True)


@pytest.mark.parametrize(
    ("value", "date", "wait_s", "note", "skew_s"),
    [
        ("120", "", 120, "seconds", None),
        (" 120 ", at(0), 120, "seconds", None),
        ("0", "", None, "past", None),
        (at(60), "", 60, "date", None),
        (at(60), at(0), 60, "date", 0),
        (at(-60), "", None, "past", None),
        (at(7200 + 60), at(7200), 60, "date", 7200),
        (at(-7200 + 60), at(-7200), 60, "date", -7200),
        (at(60), "rubbish", 60, "date", None),
        ("999999999", "", CAP, "capped", None),
        ("9" * 400, "", CAP, "capped", None),
        ("Fri, 31 Dec 9999 23:59:59 GMT", "", CAP, "capped", None),
        ("soon", "", None, "malformed", None),
        ("-5", "", None, "malformed", None),
        ("1.5", "", None, "malformed", None),
        ("٣", "", None, "malformed", None),
        ("Sunday, 06-Nov-94 08:49:37 GMT", "", None, "past", None),
        ("Sun Nov  6 08:49:37 1994", "", None, "past", None),
    ],
)
def test_forms(
    value: str, date: str, wait_s: float | None, note: str, skew_s: float | None
) -> None:
    assert read_retry_after(value, date, NOW, CAP) == RetryAfter(wait_s, note, skew_s)


def test_no_header_says_nothing() -> None:
    assert read_retry_after("", at(0), NOW, CAP) is None


@given(st.text(max_size=40), st.text(max_size=40))
def test_whatever_it_says_the_wait_is_within_the_limit(value: str, date: str) -> None:
    found = read_retry_after(value, date, NOW, CAP)
    assert found is None or found.wait_s is None or 0 < found.wait_s <= CAP
