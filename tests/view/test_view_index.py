"""The index of done runs: used while nothing has changed, never believed against the folders."""

from pathlib import Path

import pytest

from ablate.config import dump, flatten, parse, replace
from ablate.record import Claim, RunFolder, State, create_run, write_json
from ablate.view import RunFacts, index, read_all_facts, read_facts, runs_table


def make(root: Path, number: int) -> RunFolder:
    config = replace(parse({}), {"seed": number, "model.bias": ("none",) if number % 2 else ("all",)})
    folder = create_run(root, "s", "x", f"{number:012x}", dump(config))
    write_json(folder.meta, {"config": flatten(config), "data": {"fingerprint": "f"}})
    write_json(folder.summary, {"verdict": "stable", "steps": 200, "final/val/loss": float("nan")})
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


@pytest.mark.parametrize("text", ["", "{", "[]", '{"code": "other"}', '{"code": 1, "runs": 3}'])
def test_a_damaged_index_is_made_anew(tmp_path: Path, reads: Reads, text: str) -> None:
    for number in range(3):
        make(tmp_path, number)
    first = read_all_facts(tmp_path)
    (tmp_path / "s" / index.NAME).write_text(text)
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
