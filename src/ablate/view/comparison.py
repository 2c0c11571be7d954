"""A repetition's outcome in words."""

from ablate.sweep import Comparison, Repetition
from ablate.view.text import plural


def comparison_lines(comparison: Comparison, repetition: Repetition) -> list[str]:
    """`exact: …`, or the first difference with both values and what differs in the setting."""
    size = f"{plural(comparison.rows, 'row')} × {plural(comparison.columns, 'column')}"
    if comparison.sparse:
        size += f" (and {plural(comparison.sparse, 'row')} of evaluations and probes)"
    since = f" from step {repetition.start} on" if repetition.start else ""
    found = comparison.difference
    if found is None:
        lines = [f"exact: {size} identical{since}"]
    else:
        series = f" of the {comparison.cadence} series" if comparison.cadence else ""
        lines = [
            f"different: first at step {found.step}, column {found.column}{series}",
            f"  {_value(found.a)} in the original, {_value(found.b)} in the repetition",
        ]
    if comparison.setting:
        lines.append("the settings differ in:")
        lines += [f"  {line}" for line in comparison.setting]
    elif found is not None:
        lines.append("nothing recorded of the settings differs (threads, versions, device, code)")
    return lines


def _value(x: float | None) -> str:
    return "absent" if x is None else repr(x)
