import dataclasses
import json
from pathlib import Path

import datasets
import pytest

from ablate.config import DataConfig, Source, UserError
from ablate.data import fingerprint, prepare

ROWS = [f"row {number}: the rain in spain stays mainly in the plain {number}\n" * 8 for number in range(20)]


@pytest.fixture(autouse=True)
def quiet():
    datasets.disable_progress_bars()


@pytest.fixture
def rows(tmp_path: Path) -> datasets.Dataset:
    return datasets.Dataset.from_dict({"text": ROWS, "id": list(range(20))})


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "lines.jsonl"
    path.write_text("\n".join(json.dumps({"text": row}) for row in ROWS))
    return path


def tokens(data: DataConfig) -> str:
    facts = prepare(data, 8).facts
    assert facts.documents == 20
    return facts.tokens_sha256


def test_every_local_form_gives_the_same_text(
    make, rows: datasets.Dataset, lines: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "folder" / "data"
    folder.mkdir(parents=True)
    rows.to_parquet(folder / "train-00000-of-00001.parquet")
    rows.select([0]).to_parquet(folder / "test-00000-of-00001.parquet")
    rows.to_csv(tmp_path / "rows.csv")
    rows.save_to_disk(tmp_path / "saved")
    datasets.DatasetDict(train=rows, other=rows.select([1])).save_to_disk(tmp_path / "dict")
    names = [str(tmp_path / name) for name in ("folder", "rows.csv", "saved", "dict")] + [str(lines)]
    configs = [make(source=Source.hub, name=name) for name in names]
    configs.append(make(source=Source.hub, name=str(lines), streaming=True, cache=str(tmp_path / "other")))
    assert len({fingerprint(data) for data in configs}) == 1
    assert len({tokens(data) for data in configs}) == 1


def test_the_text_identifies_and_is_read_once(make, lines: Path, monkeypatch) -> None:
    data = make(source=Source.hub, name=str(lines))
    first = fingerprint(data)
    some = fingerprint(dataclasses.replace(data, max_bytes=1000))
    assert some != first
    monkeypatch.setattr(datasets, "load_dataset", None)  # the remembered digest needs no reading
    assert fingerprint(data) == first
    monkeypatch.undo()
    lines.write_text(lines.read_text() + '\n{"text": "one more"}')
    assert fingerprint(data) not in (first, some)


def test_max_bytes_stops_a_stream(make, lines: Path) -> None:
    data = make(source=Source.hub, name=str(lines), streaming=True, max_bytes=3000)
    facts = prepare(data, 8).facts
    assert 3000 <= facts.bytes < 3000 + len(ROWS[-1])


def test_a_set_that_changes_between_digest_and_reading_is_refused(make, lines: Path) -> None:
    data = make(source=Source.hub, name=str(lines), streaming=True)

    def meddle(message: str) -> None:
        if message.startswith("reading"):
            lines.write_text(lines.read_text().replace("rain", "snow"))

    with pytest.raises(UserError, match="changed while it was read"):
        prepare(data, 8, meddle)
    assert prepare(data, 8).facts.documents == 20


def test_a_wrong_remembered_digest_is_refused_once(make, lines: Path) -> None:
    data = make(source=Source.hub, name=str(lines))
    first = fingerprint(data)
    (remembered,) = (Path(data.cache) / "hub").iterdir()
    remembered.write_text("0" * 64)
    with pytest.raises(UserError, match="changed while it was read"):
        prepare(data, 8)
    assert prepare(data, 8).facts.fingerprint == first


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"split": "test"}, r"(?s)split test.*train"),
        ({"field": "txt"}, r"data.field = txt: not in .*\n  allowed: text\n  try: data.field=text"),
        ({"name": "/nowhere/at/all"}, "/nowhere/at/all does not exist"),
        ({"name": "nobody/no-such-set"}, "cannot read data set nobody/no-such-set"),
        ({"name": None}, "data.name = null"),
    ],
)
def test_what_is_missing_is_named(make, lines: Path, change: dict, told: str, streaming: bool) -> None:
    data = make(source=Source.hub, name=str(lines), streaming=streaming)
    with pytest.raises(UserError, match=told):
        fingerprint(dataclasses.replace(data, **change))


def test_splits_and_formats_of_local_sets(make, rows: datasets.Dataset, tmp_path: Path) -> None:
    rows.save_to_disk(tmp_path / "saved")
    datasets.DatasetDict(train=rows, other=rows).save_to_disk(tmp_path / "dict")
    (tmp_path / "x.bin").write_bytes(b"x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.jsonl").write_text('{"text": \n')
    for name, told in {
        "saved": r"data.split = test\n  allowed: train",
        "dict": r"data.split = test\n  allowed: train, other",
        "x.bin": r"x.bin has no known format\n  allowed: .jsonl",
        "empty": "doesn't contain any data files",
        "bad.jsonl": "(?s)cannot read data set .*JSON",
    }.items():
        with pytest.raises(UserError, match=told):
            fingerprint(make(source=Source.hub, name=str(tmp_path / name), split="test"))


def test_columns_without_text_are_refused(make, rows: datasets.Dataset, tmp_path: Path) -> None:
    rows.save_to_disk(tmp_path / "saved")
    with pytest.raises(UserError, match=r"data.field = id: .* holds int, not text"):
        fingerprint(make(source=Source.hub, name=str(tmp_path / "saved"), field="id"))
