"""What a run knows of one URL, as text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from scrapy_frontier.report import layout
from scrapy_frontier.report.instants import clock
from scrapy_frontier.report.layout import counted, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_frontier.report.explain import Explanation, FirstSeen, IdentityExplained
    from scrapy_frontier.report.history import Step
    from scrapy_frontier.report.lookup import Found, Lookup

_MARGIN: Final = 12


def render_explanation(explanation: Explanation, run_id: int) -> str:
    """An explanation in a few lines for each identity."""
    lines: list[str] = []
    for identity in explanation.identities:
        lines += ["", *_identity(identity)] if lines else _identity(identity)
    for seen in explanation.rejected:
        on = f", first on {printable(seen.page)}" if seen.page else ""
        lines.append(
            f"{printable(explanation.asked)}: {counted(seen.count, f'{seen.kind} reference')}"
            f" rejected by the rule {seen.rule}{on}."
        )
    if not explanation.is_known:
        lines.append(unknown(explanation.asked, explanation.rule, run_id))
    return "\n".join(lines) + "\n"


def unknown(asked: str, rule: str | None, run_id: int) -> str:
    """Say that a run has not seen a URL."""
    would = f"; such a reference would be rejected by the rule {rule}" if rule else ""
    return f"Run {run_id} has not seen {printable(asked)}{would}."


def _identity(one: IdentityExplained) -> list[str]:
    method = "" if one.method == "GET" else f"{one.method} "
    refers = [f"{counted(one.references.total, 'reference')} in this run"]
    if one.references.pages:
        more = ", among others" if len(one.references.pages) > 4 else ""
        refers[0] += f", on {'the pages' if len(one.references.pages) > 1 else 'the page'}{more}:"
        refers += [printable(page) for page in one.references.pages]
    else:
        refers[0] += "."
    parts = {
        "State": [one.state_sentence],
        "Gate": [one.gate_sentence],
        "First seen": [_first_seen(one.first_seen)],
        "Referred to": refers,
    }
    return [
        f"{method}{printable(one.url)}",
        *(
            line
            for label, texts in parts.items()
            for line in layout.labelled(f"  {label}", texts, _MARGIN + 3)
        ),
    ]


def _first_seen(first: FirstSeen) -> str:
    where = f" on {printable(first.page)}" if first.page else ""
    spelled = f', spelled "{printable(first.observed)}"' if first.observed else ""
    fragment = f", fragment #{printable(first.fragment)}" if first.fragment else ""
    text = f', with the text "{printable(first.text)}"' if first.text else ""
    return f"{clock(first.at)}, as a {first.kind}{where}, at depth {first.depth}{spelled}{fragment}{text}."


def render_history(
    lookup: Lookup, histories: Sequence[tuple[Found, Sequence[Step]]], run_id: int
) -> str:
    """The transitions of each identity, a line each, the inputs of the reason below it."""
    if not histories:
        rule = lookup.rejection.rule if lookup.rejection else None
        return unknown(lookup.asked, rule, run_id) + "\n"
    lines: list[str] = []
    for found, steps in histories:
        method = "" if found.method == "GET" else f"{found.method} "
        lines += ["", f"{method}{printable(found.url)}"] if lines else [f"{method}{found.url}"]
        lines += _steps(steps)
    return "\n".join(lines) + "\n"


def _steps(steps: Sequence[Step]) -> list[str]:
    lines = []
    width = max(len(_move(step)) for step in steps)
    place: tuple[str | None, str | None] | None = None
    for step in steps:
        if (step.worker, step.policy_version) != place:
            place = (step.worker, step.policy_version)
            lines.append(
                f"  session {step.session} on {step.worker}, policy version {step.policy_version}"
            )
        lines.append(_step(step, width))
        if step.detail is not None:
            lines.append(f"{'':{width + 51}}{_inputs(step.detail)}")
        if step.evidence is not None:
            lines.append(f"{'':{width + 51}}evidence {step.evidence}")
    return lines


def _move(step: Step) -> str:
    ended = f" ({step.disposition})" if step.disposition else ""
    return f"{step.source} -> {step.target}{ended}"


def _step(step: Step, width: int) -> str:
    attempt = f"attempt {step.attempt}" if step.attempt else ""
    at = (step.at or "-").replace("T", " ").removesuffix("Z")
    line = (
        f"  {at:<23}  {step.event:<10}  {_move(step):<{width}}  {attempt:<10}  {step.reason or ''}"
    )
    return line.rstrip()


def _inputs(detail: Any) -> str:
    return printable(json.dumps(detail, ensure_ascii=False))
