"""Words, numbers and tables."""

import io
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ablate.view import clean, duration, emit, loss, number, plain, rate, sparkline, table, value

HOSTILE = "[bold red]x[/] \x1b[31mred\x1b[0m\nnext\ttab \u202eover"


@given(st.text())
def test_clean_is_one_printable_line(text: str) -> None:
    shown = clean(text)
    assert shown.isprintable()
    assert clean(shown) == shown
    if text.isprintable():
        assert shown == text


@given(st.text(), st.integers(1, 40))
def test_clean_keeps_to_its_limit(text: str, limit: int) -> None:
    assert len(clean(text, limit)) <= limit


def test_hostile_text_is_shown_not_obeyed() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream in (io.StringIO(), Terminal()):
        emit(table(("name",), [(HOSTILE,)]), stream)
        printed = stream.getvalue()
        assert "[bold red]x[/]" in printed
        assert "\\x1b[31mred" in printed
        assert "\x1b[31mred" not in printed
        assert "\\n" in printed
        assert "\u202e" not in printed


def test_plain_tables_align_and_cut_nothing() -> None:
    long = "x" * 300
    lines = plain(table(("name", "lr"), [("a", "0.1"), (long, "10")], right=("lr",))).splitlines()
    assert [len(line) for line in lines] == [305, 305, 305]
    assert lines[1].endswith(" 0.1")
    assert long in lines[2]


@pytest.mark.parametrize(
    ("item", "shown"),
    [
        (None, "null"),
        (True, "true"),
        (3e-4, "0.0003"),
        (["q", "k"], "[q,k]"),
        ("pre", "pre"),
        (1e-8, "1e-08"),
    ],
)
def test_values_read_as_they_are_typed(item: object, shown: str) -> None:
    assert value(item) == shown


def test_numbers_in_records_may_be_words() -> None:
    assert (loss("NaN"), loss("Infinity"), loss(None), loss(2.34567)) == ("nan", "inf", "-", "2.346")
    assert (number(None), number(0.123456), number(12)) == ("-", "0.1235", "12")


def test_rates_are_factors_over_a_span() -> None:
    assert rate(math.log(1.8) / 100) == "×1.80/100 steps"
    assert rate(math.log(2.0) / 10, 10) == "×2.00/10 steps"
    assert rate(math.inf) == "inf"


def test_durations() -> None:
    assert [duration(s) for s in (0.2, 59.4, 200, 7500)] == ["0 s", "59 s", "3 min 20 s", "2 h 05 min"]


def test_sparkline_rises_with_the_series_and_marks_what_is_not_finite() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline([1.0, math.nan, 2.0]) == "▁×█"
    assert sparkline([]) == ""
    assert sparkline([math.nan]) == "×"


@given(st.lists(st.floats(), min_size=1, max_size=500))
@example([1.7976931348623157e308, -1.7976931348623157e308])
@example([1.7976931348623157e308] * 99)
@example([5e-324, 0.0])
def test_sparkline_takes_any_series(values: list[float]) -> None:
    assert len(sparkline(values)) == min(40, len(values))
