"""The page at the end of a sweep, and by its own command."""

from pathlib import Path

import pytest


def test_a_sweep_writes_the_page_and_report_writes_it_again(ablate, tiny: tuple[str, ...]) -> None:
    shown = ablate("sweep", *tiny, "optim.lr=0.01,0.1", "seed=0,1")
    assert shown.code == 0, shown.err
    page = Path("runs/t/index.html")
    assert f"page: {page.absolute()}" in shown.out or f"page: {page}" in shown.out
    assert "LR sensitivity over 0.01, 0.1" in shown.out
    assert "This describes 4 runs with 2 complete seeds and infers nothing" in shown.out
    assert "'seed=range(0,8)'" in shown.out

    page.unlink()
    again = ablate("report", "t")
    assert again.code == 0
    assert "4 runs" in page.read_text(encoding="utf-8")
    assert again.out.splitlines()[0] == "study t"
    table = again.out[: again.out.index("page: ")]
    assert table in shown.out


def test_a_page_that_cannot_be_written_costs_nothing_else(ablate, tiny: tuple[str, ...]) -> None:
    Path("runs/t/index.html/x").mkdir(parents=True)
    shown = ablate("sweep", *tiny, "optim.lr=0.01,0.1")
    assert shown.code == 0
    assert "page not written" in shown.err
    assert "2 stable" in shown.out or "undertrained" in shown.out


@pytest.mark.parametrize("study", ["nothing", "../x"])
def test_report_of_nothing_is_2(study: str, ablate, tiny: tuple[str, ...]) -> None:
    shown = ablate("report", study)
    assert shown.code == 2
    assert study in shown.err


@pytest.mark.parametrize("form", ["html", "md"])
def test_a_folder_for_the_one_file_is_2_and_named(form: str, ablate, tiny: tuple[str, ...]) -> None:
    Path("pages").mkdir()
    shown = ablate("report", "t", "--format", form, "--out", "pages")
    assert shown.code == 2
    assert shown.err.startswith("error: --out pages is a folder\n")
    assert "try: --out pages/" in shown.err
