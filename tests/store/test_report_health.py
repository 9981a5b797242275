"""The report names what each origin was held to and why; explain says it of a URL that waits."""

from __future__ import annotations

import json

from report_ledger import Ledger

from scrapy_frontier.policy.health import BACK_OFF, CLOSE, EASE, HealthState, dump
from scrapy_frontier.report import coverage
from scrapy_frontier.report.explain import explain
from scrapy_frontier.report.stops import stop_sentence
from scrapy_frontier.store.messages import HealthSampled

SHOP = "https://shop.test"
PAGE = f"{SHOP}/page"


def sampled(state: HealthState, code: str = BACK_OFF, gate: str = SHOP) -> HealthSampled:
    """A decision that led to a state."""
    return HealthSampled(
        gate, 1_000, code, state.concurrency, 1, "{}", json.dumps(dump(state)), is_calm=False
    )


def gate_sentence(ledger: Ledger) -> str:
    """What is said of the gate of the page that waits."""
    with ledger.read() as connection:
        (identity,) = explain(connection, ledger.run_id, PAGE, now_ms=ledger.now()).identities
    return identity.gate_sentence


def test_origins_have_their_health() -> None:
    """What each was held to, why, and how often; nothing where all went well."""
    ledger = Ledger()
    ledger.seed(PAGE)
    ledger.seed("https://well.test/")
    ledger.send(sampled(HealthState(4, 0.0, cause="timeout")))
    ledger.send(sampled(HealthState(3, 0.0, cause="timeout"), EASE))
    ledger.send(sampled(HealthState(2, 1.5, cause="refused")))
    with ledger.read() as connection:
        account = coverage(connection, ledger.run_id)
    origins = {origin.origin: origin.health for origin in account.origins}
    assert origins["https://well.test"] is None
    health = origins[SHOP]
    assert health is not None
    assert (health.concurrency, health.interval_s, health.cause) == (2, 1.5, "refused")
    assert (health.backed_off, health.eased) == (2, 1)
    assert health.is_held_back
    assert not health.is_closed
    assert json.loads(json.dumps(account.to_json()))["origins"][0].keys() >= {"origin", "health"}


def test_a_gate_that_is_held_back_says_why() -> None:
    ledger = Ledger()
    ledger.seed(PAGE)
    assert "held" not in gate_sentence(ledger)
    ledger.send(sampled(HealthState(1, 1.5, cause="refused")))
    assert gate_sentence(ledger).endswith(
        "It is held to 1 request in flight, 1.5 s apart, because it asked to slow down (429 or 503)."
    )


def test_a_closed_origin_says_so_and_the_report_counts_its_urls() -> None:
    """The URLs stay unresolved, with that reason in the report."""
    ledger = Ledger()
    ledger.seed(PAGE)
    ledger.seed(f"{SHOP}/other")
    ledger.send(sampled(HealthState(1, 60.0, cause="unreached", is_closed=True), CLOSE))
    assert gate_sentence(ledger) == (
        f"{SHOP} was closed for this run: nothing but failures for too long, it could not be reached;"
        " a resumed run asks it again, with one request first."
    )
    ledger.close("stopped", "exhausted")
    with ledger.read() as connection:
        account = coverage(connection, ledger.run_id)
    assert stop_sentence(account) == (
        f"Nothing more could be done now: 2 URLs of {SHOP} stay scheduled, which did nothing but fail"
        " (unreached). A resumed run tries again."
    )


def test_a_gate_of_a_download_slot_has_the_health_of_its_name() -> None:
    ledger = Ledger()
    ledger.seed(PAGE)
    ledger.send(sampled(HealthState(1, 2.0, cause="broken"), gate="slow lane"))
    with ledger.read() as connection:
        account = coverage(connection, ledger.run_id)
    assert account.origins[0].health is None
