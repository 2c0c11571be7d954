"""Tables as files: typed, complete, the same bytes for the same records; other thresholds, other verdicts."""

import csv
import json
import re
import shutil
import sys
from pathlib import Path

import pyarrow.parquet
import pytest
from view_effects import planted
from view_studies import product, record

from ablate.cli import main
from ablate.record import write_json
from ablate.view import Analysis
from ablate.view.frames import csv_text, frames
from ablate.view.report import study_results

NAMES = {"runs", "points", "seeds", "arms", "effects", "floor"}


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_csv_has_every_table_and_the_exact_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "runs"
    planted(root, {"none": 0.02, "linear": 0.05}, range(6))
    assert main(["report", "s", "--root", str(root), "--format", "csv"]) == 0
    folder = root / "s" / "tables"
    assert {p.stem for p in folder.iterdir()} == NAMES
    assert set(capsys.readouterr().out.split()) == {str(p) for p in folder.iterdir()}
    assert not (root / "s" / "index.html").exists()
    runs = rows(folder / "runs.csv")
    assert len(runs) == 2 * 6 * 4
    assert {r["bias"] for r in runs} == {"none", "linear"}
    analysis = Analysis.of(study_results(root, "s"))
    expected = analysis.rows[0].effect.estimate
    first = rows(folder / "effects.csv")[0]
    assert (float(first["mean"]), float(first["sd"])) == (expected.mean, expected.sd)
    assert expected.interval is not None
    assert float(first["low"]) == expected.interval.low
    assert first["detected"] == "true"


def test_the_same_records_give_the_same_bytes_wherever_they_stand(tmp_path: Path) -> None:
    planted(tmp_path / "a", {"none": 0.02, "linear": 0.05, "k": 0.02}, range(5), rates=(0.001, 0.1))
    shutil.copytree(tmp_path / "a", tmp_path / "elsewhere" / "b")
    for kind in ("csv", "parquet", "md"):
        outs = [tmp_path / f"{kind}1", tmp_path / f"{kind}2"]
        for root, out in zip((tmp_path / "a", tmp_path / "elsewhere" / "b"), outs, strict=True):
            assert main(["report", "s", "--root", str(root), "--format", kind, "--out", str(out)]) == 0
        first, second = (sorted(o.iterdir()) if o.is_dir() else [o] for o in outs)
        assert kind == "md" or {p.stem for p in first} == {p.stem for p in second} == NAMES
        assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]


def test_parquet_holds_what_csv_holds(tmp_path: Path) -> None:
    planted(tmp_path / "r", {"none": 0.02, "linear": 0.05}, range(2))
    out = tmp_path / "out"
    assert main(["report", "s", "--root", str(tmp_path / "r"), "--format", "parquet", "--out", str(out)]) == 0
    results = study_results(tmp_path / "r", "s")
    for frame in frames(results, Analysis.of(results)):
        found = pyarrow.parquet.read_table(out / f"{frame.name}.parquet")
        assert tuple(found.column_names) == frame.columns
        assert [tuple(r.values()) for r in found.to_pylist()] == [tuple(r) for r in frame.rows]
        assert len(csv_text(frame).splitlines()) == 1 + len(frame.rows)


def test_markdown_is_text_whatever_names_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, field in enumerate(("<script>alert(1)</script>|x", "plain")):
        record(tmp_path, number, data={"source": "hub", "name": "x", "field": field})
    assert main(["report", "s", "--root", str(tmp_path), "--format", "md"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("# s\n")
    assert re.search(r"(?<!\\)<", out) is None
    assert r"\<script\>alert(1)\</script\>\|x" in out
    tables = [line for line in out.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in tables)


def test_other_thresholds_give_other_verdicts_and_leave_the_record(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    folder = record(root, 0, final=4.3)
    _with_curve(folder.path)
    before = (folder.summary.read_bytes(), folder.meta.read_bytes())
    out = tmp_path / "csv"
    csv_out = ["report", "s", "--root", str(root), "--format", "csv", "--out", str(out)]
    assert main(csv_out) == 0
    assert [r["verdict"] for r in rows(out / "runs.csv")] == ["stable"]
    assert main([*csv_out, "verdict.cap=0.9"]) == 0
    assert [r["verdict"] for r in rows(out / "runs.csv")] == ["undertrained"]
    assert main(["report", "s", "--root", str(root), "verdict.cap=0.9"]) == 0
    assert "verdict.cap=0.9" in (root / "s" / "rejudged.html").read_text(encoding="utf-8")
    assert not (root / "s" / "index.html").exists()
    assert (folder.summary.read_bytes(), folder.meta.read_bytes()) == before


def test_only_thresholds_can_be_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path, 0)
    assert main(["report", "s", "--root", str(tmp_path), "optim.lr=1"]) == 2
    assert "verdict.key=value" in capsys.readouterr().err


def test_a_study_is_named_by_its_path_too(tmp_path: Path) -> None:
    product(tmp_path / "deep", ["none"], [0.01, 0.1], [0])
    assert main(["report", str(tmp_path / "deep" / "s"), "--out", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").stat().st_size > 4_000_000
    assert not (tmp_path / "deep" / "s" / "index.html").exists()


def test_pictures_without_kaleido_say_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path, 0)
    monkeypatch.setitem(sys.modules, "kaleido", None)
    command = ["report", "s", "--root", str(tmp_path), "--format", "md", "--figures", str(tmp_path / "f")]
    assert main(command) == 2
    assert "ablate-bias[figures]" in capsys.readouterr().err


def _with_curve(path: Path) -> None:
    """A record whose curve can be judged: it falls from 6 to 4.3 in 20 steps, below the unigram (5)."""
    loss = [6.0 - 1.7 * min(1.0, t / 12) for t in range(20)]
    columns = ["step", "train/loss", "train/unigram", "grad/norm"]
    lines = [f'{{"schema":1,"columns":{columns},"attempt":1,"from_step":0}}'.replace("'", '"')]
    lines += [f"[{t},{x},5.0,1.0]" for t, x in enumerate(loss)]
    (path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    head = '{"schema":1,"columns":["step","val/loss"],"attempt":1,"from_step":0}'
    (path / "metrics.val.jsonl").write_text(f"{head}\n[0,6.0]\n[20,4.3]\n")
    meta = json.loads((path / "meta.json").read_text())
    meta["data"]["unigram_entropy"] = 5.0
    write_json(path / "meta.json", meta)
