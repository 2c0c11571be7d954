"""The study's page, for studies of every kind."""

import contextlib
import json
import math
import os
import re
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path

import pytest
from view_effects import planted
from view_studies import product, record

from ablate.config import UserError
from ablate.record import State
from ablate.stats import Response
from ablate.view import Analysis, write_report
from ablate.view.report import study_results
from ablate.view.report.tables import effects_table

HOSTILE = '<script>alert("x")</script><img src=//evil.example/x onerror=alert(1)>'
OURS = re.compile(r"<script>\s*/\*\*\s*\* plotly\.js.*?</script>", re.S)
LIMIT = 10_000_000


class Page(HTMLParser):
    """Tags with their attributes, and the text outside scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.quiet = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.quiet = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self.quiet = False

    def handle_data(self, data: str) -> None:
        if not self.quiet:
            self.text += data

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


def made(root: Path) -> tuple[Page, dict]:
    """The page without plotly.js, and the data inside it."""
    text = write_report(root, "s").read_text(encoding="utf-8")
    assert len(text) < LIMIT
    rest, count = OURS.subn("", text)
    assert count == 1, "plotly.js is in the page once"
    data = re.search(r'id="data">(.*?)</script>', rest, re.S)
    assert data is not None
    return Page(rest), json.loads(data[1])


def panels(data: dict, group: str) -> dict[str, dict]:
    return {name: figure for name, figure in data["figures"].items() if name.startswith(f"{group}-")}


def curves(data: dict, group: str) -> list[dict]:
    return [trace for figure in panels(data, group).values() for trace in figure["data"]]


def test_a_whole_study(tmp_path: Path) -> None:
    product(tmp_path, ["none", "all"], [0.001, 0.01, 0.1], [0, 1])
    page, data = made(tmp_path)
    assert "2 arms × 3 learning rates × 2 seeds: 12 runs" in page.text
    assert "infers nothing" in page.text
    assert "optim.lr=0.001,0.01,0.1 'seed=range(0,8)'" in page.text
    assert set(panels(data, "rate")) == {"rate-0", "rate-1"}
    assert set(panels(data, "out")) == {"out-o", "out-q", "out-head"}
    lines = [t for t in data["figures"]["out-o"]["data"] if t["mode"] == "lines"]
    assert [t["meta"] for t in lines] == [0, 0, 0, 1, 1, 1]
    placed = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert {*data["figures"], "map-growth", "map-run", "map-twin"} <= set(placed)
    assert len(placed) == len(set(placed))


def test_the_sections_stand_in_their_order(tmp_path: Path) -> None:
    product(tmp_path, ["none", "all"], [0.001, 0.1], [0, 1])
    page, _ = made(tmp_path)
    ids = [attrs["id"] for tag, attrs in page.tags if tag == "section"]
    assert ids == ["question", "answer", "tables", "figures", "floor", "undetected", "methods", "runs"]
    assert page.count("img") == page.count("link") - 1 == 0


def test_every_seed_has_a_point_and_lost_ones_stand_at_the_start_marked(tmp_path: Path) -> None:
    product(tmp_path, ["none"], [0.01, 0.1], [0, 1])
    _, data = made(tmp_path)
    points = [t for t in curves(data, "rate") if t["mode"] == "markers+text"]
    found = {t["name"]: t for t in points}
    assert {name: len(t["x"]) for name, t in found.items()} == {"stable": 2, "diverged": 2}
    assert found["diverged"]["y"] == [6.0, 6.0]
    assert found["diverged"]["text"] == ["↑", ""]  # one arrow a rate
    assert found["stable"]["text"] == ["", ""]
    assert found["diverged"]["marker"]["symbol"] != found["stable"]["marker"]["symbol"]


def test_the_map_shows_a_lost_run_beside_its_twin(tmp_path: Path) -> None:
    product(tmp_path, ["none"], [0.01, 0.1], [0])
    page, data = made(tmp_path)
    chosen = [attrs["value"] for tag, attrs in page.tags if tag == "option" and "selected" in attrs]
    runs = {entry["id"]: entry for entry in data["maps"]["runs"]}
    (run,) = (runs[value] for value in chosen if value in runs)
    assert "diverged" in run["label"]
    assert "stable" in runs[run["twin"]]["label"]
    row = run["z"][run["linears"].index("b01_o")]
    assert row[1] - row[0] == round(100 * math.log10(1.5))
    assert row[-1] is None


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    for number, name in enumerate([HOSTILE, "plain"]):
        record(tmp_path, number, notes=HOSTILE, data={"source": "hub", "name": "x", "field": name})
    record(
        tmp_path,
        9,
        seed=1,
        verdict=None,
        state=State.failed,
        reason=HOSTILE,
        data={"source": "hub", "name": "x", "field": "plain"},
    )
    page, data = made(tmp_path)
    assert page.text.count(HOSTILE) >= 3  # a note, a reason, an arm
    assert page.count("img") == 0
    assert page.count("script") == 2
    told = json.dumps(data["figures"])
    assert "<script" not in told
    assert "&lt;script" in told
    assert not any(str(v).startswith(("http", "//")) for _, attrs in page.tags for v in attrs.values())


@pytest.mark.parametrize("kind", ["one", "running", "failures", "all diverged", "no rows", "unreadable"])
def test_studies_of_every_kind(kind: str, tmp_path: Path) -> None:
    if kind == "one":
        record(tmp_path, 0)
    elif kind == "running":
        record(tmp_path, 0, verdict=None, state=State.running)
        record(tmp_path, 1, lr=0.1, verdict=None, state=None)
    elif kind == "failures":
        record(tmp_path, 0, lr=0.1)
        record(tmp_path, 1, verdict=None, state=State.failed, reason="out of memory\nat step 3")
    elif kind == "all diverged":
        for number, final in enumerate([math.nan, math.inf, 7.0]):
            record(tmp_path, number, lr=10.0**-number, verdict="diverged", final=final, growth=2.0)
    elif kind == "no rows":
        record(tmp_path, 0, verdict=None, state=None)
    else:
        record(tmp_path, 0).metrics().write_text("no json\n")
        record(tmp_path, 1, lr=0.1).config.write_text(":")
    page, data = made(tmp_path)
    says = {
        "one": "1 arm × 1 learning rate × 1 seed: 1 run",
        "running": "0 of 2 runs have finished",
        "failures": "out of memory; at step 3",
        "all diverged": "no rate trains",
        "no rows": "No run has recorded outputs yet",
        "unreadable": "2 runs",
    }
    assert says[kind] in page.text
    assert all(math.isfinite(y) for t in curves(data, "rate") for y in t["y"] if y is not None)


def test_64_arms_stay_small(tmp_path: Path) -> None:
    number = 0
    for width in range(8, 8 + 4 * 64, 4):
        for lr in (0.01, 0.1):
            record(tmp_path, number, {"width": width, "heads": 4}, lr=lr)
            number += 1
    page, data = made(tmp_path)
    assert len(panels(data, "rate")) == 64
    assert "64 arms × 2 learning rates" in page.text


def test_a_study_without_runs_is_an_error_that_names_the_others(tmp_path: Path) -> None:
    record(tmp_path, 0)
    with pytest.raises(UserError, match="nothing"):
        write_report(tmp_path, "nothing")
    assert not (tmp_path / "nothing").exists()
    (tmp_path / "empty" / "requests").mkdir(parents=True)
    with pytest.raises(UserError, match="empty") as caught:
        write_report(tmp_path, "empty")
    assert caught.value.allowed == "s"


def test_writing_again_replaces_the_page_and_leaves_nothing_else(tmp_path: Path) -> None:
    record(tmp_path, 0)
    before = sorted(p.name for p in (tmp_path / "s").iterdir())
    write_report(tmp_path, "s")
    write_report(tmp_path, "s")
    assert sorted(p.name for p in (tmp_path / "s").iterdir()) == sorted([*before, "index.html"])


def test_a_pipe_is_written_into_and_a_link_is_followed(tmp_path: Path) -> None:
    record(tmp_path, 0)
    pipe, link, page = tmp_path / "pipe", tmp_path / "link", tmp_path / "far" / "page.html"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(write_report, tmp_path, "s", out=pipe)
        text = b""
        while not written.done():
            with contextlib.suppress(BlockingIOError):
                text += os.read(reader, 1 << 20)
        written.result()
    with contextlib.suppress(BlockingIOError):
        text += os.read(reader, 1 << 20)
    os.close(reader)
    assert pipe.is_fifo()
    assert text.startswith(b"<!DOCTYPE html>")
    assert text.endswith(b"</html>\n")
    link.symlink_to(page)
    for _ in ("first", "again"):
        write_report(tmp_path, "s", out=link)
        assert link.is_symlink()
        assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [p.name for p in page.parent.iterdir()] == ["page.html"]


def test_a_folder_in_the_pages_place_is_named(tmp_path: Path) -> None:
    record(tmp_path, 0)
    (tmp_path / "s" / "index.html").mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        write_report(tmp_path, "s")
    assert caught.value.filename == str(tmp_path / "s" / "index.html")


def test_with_few_seeds_every_difference_stands_in_the_table_of_effects(tmp_path: Path) -> None:
    planted(tmp_path / "few", {"none": 0.02, "linear": 0.05}, range(2))
    few = effects_table(Analysis.of(study_results(tmp_path / "few", "s")), Response.edge)
    assert "effect" in few.columns
    assert "effect, 95 %" not in few.columns
    (cell,) = few.column("each seed")
    assert [part.split(": ")[0] for part in cell.split(" · ")] == ["0", "1"]
    planted(tmp_path / "more", {"none": 0.02, "linear": 0.05}, range(6))
    more = effects_table(Analysis.of(study_results(tmp_path / "more", "s")), Response.edge)
    assert "effect, 95 %" in more.columns
    assert "each seed" not in more.columns
