"""The index of done runs: used while nothing has changed, never believed against the folders."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ablate.config import dump, flatten, parse, replace
from ablate.record import Claim, RunFolder, State, create_run, write_json
from ablate.view import Arms, RunFacts, index, read_all_facts, read_facts, records, runs_table
from ablate.view.shared import Block, Layered, Row


def make(root: Path, number: int, summary: Mapping[str, object] | None = None) -> RunFolder:
    config = replace(parse({}), {"seed": number, "model.bias": ("none",) if number % 2 else ("all",)})
    folder = create_run(root, "s", "x", f"{number:012x}", dump(config))
    write_json(folder.meta, {"config": flatten(config), "data": {"fingerprint": "f"}})
    write_json(folder.summary, summary or {"verdict": "stable", "steps": 200, "final/val/loss": float("nan")})
    Claim.take(folder).finish(State.done)
    return folder


class Reads:
    """Counts the folders that are really read."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(self, folder: RunFolder) -> RunFacts:
        self.read.append(folder.id)
        return read_facts(folder)

    def take(self) -> list[str]:
        taken, self.read = self.read, []
        return taken


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    counter = Reads()
    monkeypatch.setattr(index, "read_facts", counter)
    monkeypatch.setattr(index, "WORTHWHILE", 3)
    monkeypatch.setattr(index, "SETTLED_NS", 0)
    return counter


def test_only_what_changed_is_read_again(tmp_path: Path, reads: Reads) -> None:
    folders = [make(tmp_path, number) for number in range(4)]
    first = read_all_facts(tmp_path)
    assert len(reads.take()) == 4
    again = read_all_facts(tmp_path, "s")
    assert reads.take() == []
    assert again == first
    assert runs_table(again, again) == runs_table(first, first)
    write_json(folders[1].summary, {"verdict": "diverged", "steps": 3})
    assert [run.verdict for run in read_all_facts(tmp_path)] == ["stable", "diverged", "stable", "stable"]
    assert reads.take() == [folders[1].id]
    Claim.take(folders[2])  # trained anew: a new attempt
    assert [run.state for run in read_all_facts(tmp_path)] == ["done", "done", "running", "done"]
    assert reads.take() == [folders[2].id]
    folders[3].meta.write_text("{")  # in place
    assert read_all_facts(tmp_path)[3].flat["seed"] == 3
    assert folders[3].id in reads.take()
    folders[0].path.rename(tmp_path / "elsewhere")
    assert len(read_all_facts(tmp_path)) == 3


def spoilt(whole: bytes, kind: str) -> bytes:
    """An index damaged in some way."""
    if kind == "cut":
        return whole[:-10]
    if kind == "digit":  # one wrong digit in a column that is parsed late
        place = whole.rindex(b"200")
        return whole[:place] + b"201" + whole[place + 3 :]
    if kind == "other code":
        return whole.replace(b'"code":"', b'"code":"0', 1)
    return kind.encode()


@pytest.mark.parametrize(
    "kind", ["", "{", "[]\n", '{"code": "other"}\n', "\n\n", "cut", "digit", "other code"]
)
def test_a_damaged_index_is_made_anew(tmp_path: Path, reads: Reads, kind: str) -> None:
    for number in range(3):
        make(tmp_path, number)
    first = read_all_facts(tmp_path)
    path = tmp_path / "s" / index.NAME
    path.write_bytes(spoilt(path.read_bytes(), kind))
    reads.take()
    assert read_all_facts(tmp_path) == first
    assert len(reads.take()) == 3
    assert read_all_facts(tmp_path) == first
    assert reads.take() == []


def test_files_that_have_just_changed_are_not_indexed(
    tmp_path: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "SETTLED_NS", 10**15)
    for number in range(3):
        make(tmp_path, number)
    read_all_facts(tmp_path)
    reads.take()
    read_all_facts(tmp_path)
    assert len(reads.take()) == 3


def test_small_studies_have_no_index(tmp_path: Path, reads: Reads) -> None:
    make(tmp_path, 1)
    read_all_facts(tmp_path)
    assert not (tmp_path / "s" / index.NAME).exists()


SUMMARIES: tuple[Mapping[str, object], ...] = (
    {"verdict": "stable", "steps": 200, "growth/a": 2.0, "growth/b": 1},
    {"verdict": "stable", "steps": 200, "growth/b": 2.5, "growth/a": 1.0},  # fastest first
    {"verdict": "diverged", "steps": 3, "reasons": ["one", "two"], "first_bad_step": None},
    {"steps": 200},
)


def test_an_index_keeps_every_summary_as_it_is(tmp_path: Path, reads: Reads) -> None:
    for number, summary in enumerate(SUMMARIES):
        make(tmp_path, number, summary)
    first, again = read_all_facts(tmp_path), read_all_facts(tmp_path)
    assert len(reads.take()) == len(SUMMARIES)
    assert [list(run.summary.items()) for run in again] == [list(s.items()) for s in SUMMARIES]
    assert [list(run.flat.items()) for run in again] == [list(run.flat.items()) for run in first]
    assert records(again, again) == records(first, first)
    assert [run.summary.get("growth/b", "none") for run in again] == [1, 2.5, "none", "none"]
    assert [len(run.summary) for run in again] == [4, 4, 4, 1]
    with pytest.raises(KeyError):
        _ = again[3].summary["verdict"]


def test_arms_are_the_same_from_the_index_and_beside_it(tmp_path: Path, reads: Reads) -> None:
    folders = [make(tmp_path, number) for number in range(6)]
    first = read_all_facts(tmp_path)
    Claim.take(folders[5])  # one that is not in the index among those that are
    again = read_all_facts(tmp_path)
    assert [run.state for run in again].count("running") == 1
    want, got = Arms.of(first), Arms.of(again)
    assert got == want
    assert {want.label(run) for run in first} == {"bias=none", "bias=all"}
    reads.take()
    read_all_facts(tmp_path)
    assert reads.take() == [folders[5].id]


def test_an_index_is_written_again_only_for_a_share_of_its_runs(
    tmp_path: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "OUTDATED", 0.5)
    folders = [make(tmp_path, number) for number in range(4)]
    read_all_facts(tmp_path)
    path = tmp_path / "s" / index.NAME
    before = path.read_bytes()
    for count, folder in enumerate(folders[:3], start=1):
        write_json(folder.summary, {"verdict": "diverged", "steps": count})
        assert read_all_facts(tmp_path)[count - 1].verdict == "diverged"
        assert (path.read_bytes() == before) == (count < 3)


VALUES = st.one_of(st.none(), st.booleans(), st.integers(0, 2), st.floats(0, 2), st.sampled_from(["1", "a"]))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    values=st.tuples(VALUES, VALUES, VALUES),
    others=st.tuples(VALUES, VALUES, VALUES),
    rows=st.lists(st.permutations("abc"), min_size=1, max_size=4),
)
def test_shared_mappings_are_what_they_stand_for(
    values: tuple[object, ...], others: tuple[object, ...], rows: list[list[str]]
) -> None:
    flat, base = dict(zip("abc", values, strict=True)), dict(zip("abc", others, strict=True))
    layered = Layered.of(flat, base)
    assert repr(layered) == repr(flat)
    assert layered == flat
    assert (len(layered), "a" in layered, "z" in layered, layered.get("z", 5)) == (3, True, False, 5)
    beside = Layered(base, {"z": 1})
    assert list(beside.items()) == [*base.items(), ("z", 1)]
    wanted = [{key: flat[key] for key in order} for order in rows]
    block = Block(*Block.lines_of(wanted))
    assert repr([dict(Row(block, i)) for i in range(len(rows))]) == repr(wanted)
