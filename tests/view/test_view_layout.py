"""Tables in terminals: folded at spaces, cut at last, never broken within a word."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from view_runs import made_run

from ablate.view import emit, plain, print_keys, runs_table, study_table, table
from ablate.view.layout import FLOOR, GAP, fit, fold

WORDS = st.lists(st.text("abc=/", min_size=1, max_size=12), min_size=1, max_size=6).map(" ".join)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def drawn(tab: object, width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("LINES", "50")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    out = Terminal()
    emit(tab, out)
    return [line.rstrip() for line in out.getvalue().splitlines()]


@given(WORDS, st.integers(1, 40))
def test_folding_keeps_to_the_width_and_to_words(text: str, width: int) -> None:
    lines = fold(text, width)
    assert all(len(line) <= width for line in lines)
    if max(map(len, text.split())) <= width:
        assert " ".join(lines) == text
    else:
        assert any(line.endswith("…") for line in " ".join(lines).split())


@given(st.lists(st.lists(WORDS, min_size=3, max_size=3), min_size=1, max_size=5), st.integers(10, 120))
def test_columns_fit_or_are_as_narrow_as_they_get(columns: list[list[str]], room: int) -> None:
    widths = fit(columns, room, [False] * len(columns))
    longest = [max(map(len, column)) for column in columns]
    assert all(1 <= wide <= most for wide, most in zip(widths, longest, strict=True))
    total = sum(widths) + GAP * (len(widths) - 1)
    assert total <= room or all(wide <= FLOOR for wide in widths)
    if sum(longest) + GAP * (len(widths) - 1) <= room:
        assert widths == longest


def test_whole_columns_stay_as_they_are() -> None:
    assert fit([["a" * 50], ["b " * 30]], 60, [True, False])[0] == 50
    assert fit([["a" * 90], ["b" * 30]], 60, [True, False]) == [90, FLOOR]


LONG = [
    made_run(
        i,
        {"model.position": position, "model.qk_norm": bool(i), "optim.lr": 10.0**-i},
        verdict="undertrained",
        growth={"b03_down": 0.01},
    )
    for i, position in enumerate(["sinusoidal", "learned"])
]  # fmt: skip


@pytest.mark.parametrize("make", [lambda: runs_table(LONG, LONG), lambda: study_table(LONG)])
def test_tables_of_runs_fold_the_arm_at_its_factors(make, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = drawn(make(), 80, monkeypatch)
    assert max(map(len, lines)) <= 80
    words = " ".join(lines).split()
    assert {"position=sinusoidal", "qk_norm=true", "undertrained"} <= {*words} | {
        w.strip("1 ") for w in words
    }
    assert not any(len(line.strip()) == 1 for line in lines)


def test_ids_are_short_in_a_terminal_and_whole_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [made_run(0xABCDEF012345)]
    assert "abcdef01 " in "\n".join(drawn(runs_table(runs, runs), 80, monkeypatch))
    assert "abcdef012345" not in "\n".join(drawn(runs_table(runs, runs), 80, monkeypatch))
    assert "abcdef012345" in plain(runs_table(runs, runs))


def test_paths_are_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "runs/" + "x" * 120
    assert path in "".join(
        drawn(table(("what", "where"), [("log", path)], whole=("where",)), 60, monkeypatch)
    )


@pytest.mark.parametrize("width", [60, 80])
def test_keys_in_a_narrow_terminal_stand_in_lines_of_their_own(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("LINES", "50")
    monkeypatch.setenv("TERM", "dumb")
    out = Terminal()
    print_keys("", out)
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    place = lines.index("optim.steps = 200  (science; int ≥ 1 and ≤ 1e+09)")
    assert lines[place + 1] == "    optimiser steps"


def test_what_folds_is_folded_before_a_word_is_cut() -> None:
    assert fit([["a" * 20], ["bb bb bb bb bb"]], 20 + GAP + 8, [False, False]) == [20, 8]
    assert fit([["a" * 20], ["bb " * 40]], 40, [False, False])[0] == 20
