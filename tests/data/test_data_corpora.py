import dataclasses
import json
import os
import sysconfig
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ablate.config import DataConfig, Source, UserError
from ablate.data import CORPORA, Texts, digests, expand, fingerprint, of_files, prepare


def documents(data) -> list[str]:
    corpus = CORPORA[data.source](data)
    assert isinstance(corpus, Texts)
    return sorted(corpus.read())


def table(path: Path, **columns) -> str:
    pq.write_table(pa.table(columns), path)
    return str(path)


def test_text_files_are_documents_and_rows_are_documents(make, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes("é\r\n".encode())
    (tmp_path / "b.jsonl").write_text('{"body": "one"}\n\n{"body": null}\n{"body": "two\\n", "x": 1}')
    table(tmp_path / "c.parquet", body=["three", None, "four"], n=[1, 2, 3])
    paths = tuple(str(tmp_path / name) for name in ("a.md", "b.jsonl", "c.parquet"))
    assert documents(make(paths=paths, field="body")) == ["", "", "four", "one", "three", "two\n", "é\r\n"]


def test_globs_find_files_once(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    deep = tmp_path / "notes" / "deep"
    deep.mkdir(parents=True)
    for path in (deep / "a.txt", deep.parent / "b.txt", deep.parent / "c.rst", deep / "[d].txt"):
        path.write_text("x")
    found = expand(
        ["~/notes/**/*.txt", "~/notes/b.txt", str(tmp_path / "notes" / "*"), "~/notes/deep/[d].txt"]
    )
    assert [path.name for path in found] == ["b.txt", "c.rst", "[d].txt", "a.txt"]


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("poem3.txt", r"poem3.txt does not exist\n  try: .*poem\d\d.txt"),
        ("nowhere/x.txt", "does not exist"),
        ("*.pdf", r"no file matches .*\*.pdf"),
        ("", r"is a folder\n  try: .*/\*\*/\*.txt"),
    ],
)
def test_paths_that_name_no_file(make, poems: Path, path: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        fingerprint(make(paths=(f"{poems}/{path}",)))


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.txt", b"fine\n\xff\xfe", "a.txt is not UTF-8 text: byte 0xff at offset 5"),
        ("a.jsonl", b'{"text": "x"}\n{"text": "\xff"}', "a.jsonl is not UTF-8 text: byte 0xff at offset 24"),
        ("a.jsonl", b'{"text": "x"}\n{"text": ', "a.jsonl, line 2 is not JSON"),
        ("a.jsonl", b'{"text": "x"}\n[1]', "a.jsonl, line 2 is not a JSON object"),
        (
            "a.jsonl",
            b'{"txt": "x", "n": 1}',
            r"text: not in .*line 1\n  allowed: n, txt\n  try: data.field=txt",
        ),
        ("a.jsonl", b'{"text": 3}', "line 1 holds int, not text"),
        ("a.jsonl", b'{"text": "\\ud800"}', "line 1 is not JSON"),
        ("a.parquet", b"not parquet", "a.parquet cannot be read as parquet"),
        ("a.txt", b"", "the corpus is empty"),
        ("a.jsonl", b'{"text": ""}\n', "the corpus is empty"),
    ],
)
def test_files_that_cannot_be_read(make, tmp_path: Path, name: str, content: bytes, told: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=told):
        prepare(make(paths=(str(tmp_path / name),)), 8)


def test_parquet_columns_are_checked(make, tmp_path: Path) -> None:
    path = table(tmp_path / "a.parquet", texts=["x"], n=[1])
    with pytest.raises(UserError, match=r"data.field = text: not in .*\n.*n, texts\n.*data.field=texts"):
        prepare(make(paths=(path,)), 8)
    with pytest.raises(UserError, match=r"data.field = n: .* holds int, not text"):
        prepare(make(paths=(path,), field="n"), 8)


def test_no_paths_are_refused(make) -> None:
    with pytest.raises(UserError, match=r"data.paths = \[\]"):
        fingerprint(make())


def test_max_bytes_takes_whole_documents_by_content(make, poems: Path) -> None:
    paths = (f"{poems}/*.txt",)
    whole = prepare(make(paths=paths), 8).facts
    some = prepare(make(paths=paths, max_bytes=2000), 8).facts
    assert whole.documents == 20
    assert 2000 <= some.bytes < 2000 + whole.bytes / 19
    for file in sorted(poems.iterdir()):
        file.rename(poems / f"renamed-{hash(file.name) % 997}-{file.name}")
    assert prepare(make(paths=paths, max_bytes=2000), 8).facts == some


def test_fingerprint_is_of_content_not_of_names(make, poems: Path, tmp_path: Path) -> None:
    first = fingerprint(make(paths=(f"{poems}/*.txt",)))
    moved = tmp_path / "moved"
    moved.mkdir()
    for number, file in enumerate(sorted(poems.iterdir())):
        (moved / f"{(number * 7) % 20}.md").write_bytes(file.read_bytes())
    data = make(paths=(f"{moved}/*",), cache=str(tmp_path / "other"))
    assert fingerprint(data) == first
    assert fingerprint(dataclasses.replace(data, field="body")) == first  # plain files have no fields
    (moved / "3.md").write_text("other")
    assert fingerprint(data) != first


def test_fingerprint_knows_how_files_are_read(make, tmp_path: Path) -> None:
    row = json.dumps({"text": "a", "body": "b"})
    (tmp_path / "a.jsonl").write_text(row)
    (tmp_path / "a.txt").write_text(row)
    marks = {
        fingerprint(make(paths=(str(tmp_path / "a.jsonl"),))),
        fingerprint(make(paths=(str(tmp_path / "a.jsonl"),), field="body")),
        fingerprint(make(paths=(str(tmp_path / "a.txt"),))),
    }
    assert len(marks) == 3


def test_a_rewrite_of_the_same_size_is_noticed(make, poems: Path, monkeypatch) -> None:
    monkeypatch.setattr(digests, "SETTLED_NS", -1)
    data, file = make(paths=(f"{poems}/*.txt",)), poems / "poem00.txt"
    first, before = fingerprint(data), file.stat()
    file.write_text(file.read_text().replace("rain", "snow"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert fingerprint(data) != first


def test_digests_are_remembered_until_the_file_changes(make, poems: Path, monkeypatch) -> None:
    monkeypatch.setattr(digests, "SETTLED_NS", -1)
    data, store = make(paths=(f"{poems}/*.txt",)), Path(make().cache) / "digests.json"
    first = fingerprint(data)
    known = json.loads(store.read_bytes())
    assert len(known) == 20
    known[str(poems / "poem00.txt")][3] = "0" * 64
    store.write_text(json.dumps(known))
    assert fingerprint(data) != first  # the remembered digest was believed
    os.utime(poems / "poem00.txt")
    assert fingerprint(data) == first


@pytest.mark.parametrize("damage", [b"", b"[]", b"{", b'{"/x": 1}'])
def test_a_damaged_digest_store_costs_only_time(make, poems: Path, monkeypatch, damage: bytes) -> None:
    monkeypatch.setattr(digests, "SETTLED_NS", -1)
    data, store = make(paths=(f"{poems}/*.txt",)), Path(make().cache) / "digests.json"
    first = fingerprint(data)
    store.write_bytes(damage)
    assert fingerprint(data) == first
    assert len(json.loads(store.read_bytes())) == 20


def test_a_file_that_changes_while_it_is_read_is_refused(make, poems: Path) -> None:
    def meddle(message: str) -> None:
        if message.startswith("reading"):
            (poems / "poem00.txt").write_text("changed")

    with pytest.raises(UserError, match=r"poem00.txt changed while it was read"):
        prepare(make(paths=(f"{poems}/*.txt",)), 8, meddle)


def test_stdlib_is_library_source_without_tests(make) -> None:
    data = make(source=Source.stdlib)
    found = documents(data)
    assert len(found) > 300
    assert any("class JSONDecodeError(ValueError)" in text for text in found)  # json/decoder.py
    assert any("class TestCase(object)" in text for text in found)  # unittest is library
    root = Path(sysconfig.get_path("stdlib"))
    tests = {path.read_bytes() for path in root.glob("*/**/test*/*.py") if path.stat().st_size > 200}
    tests |= {path.read_bytes() for path in root.glob("test/test_[a-d]*.py")}
    packages = {path.read_bytes() for path in root.glob("site-packages/pytest/*.py")}
    assert not (tests | packages) & {text.encode() for text in found}


def test_a_new_corpus_is_one_function(make, poems: Path, monkeypatch) -> None:
    def verses(data: DataConfig) -> Texts:
        files = of_files(sorted(poems.glob("*.txt")), data)

        def read():
            for text in files.read():
                yield from text.splitlines(keepends=True)

        return dataclasses.replace(files, identity={**files.identity, "verses": 1}, read=read)

    data = make(paths=(f"{poems}/*.txt",))
    whole = prepare(data, 8).facts
    monkeypatch.setitem(CORPORA, Source.text, verses)
    lines = prepare(data, 8).facts
    assert (whole.documents, lines.documents) == (20, 240)
    assert whole.bytes == lines.bytes
    assert whole.fingerprint != lines.fingerprint


def test_devices_and_pipes_are_no_text(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", str(tmp_path / "pipe")):
        with pytest.raises(UserError, match=f"{path} is no regular file"):
            expand([path])
