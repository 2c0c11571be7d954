"""The token cache under real processes: races, deaths, damage, a full disk."""

import dataclasses
import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ablate.config import DataConfig, UserError
from ablate.data import TokenData, prepare

# Prepares in a process of its own, telling each announcement. Where `hold` begins an announcement, it
# waits there, inside the build, until the file `go` appears.
PREPARE = """
import json, resource, sys, time
from dataclasses import asdict
from pathlib import Path
from ablate.config import DataConfig, Source, UserError
from ablate.data import prepare

settings, hold, go, limit = json.loads(sys.argv[1])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

def announce(message):
    print(message, flush=True)
    while hold and message.startswith(hold) and not Path(go).exists():
        time.sleep(0.01)

try:
    data = DataConfig(**{**settings, "source": Source(settings["source"])})
    facts = prepare(data, 8, announce).facts
except UserError as error:
    print("UserError", error, flush=True)
else:
    print(json.dumps(asdict(facts)), flush=True)
"""


@pytest.fixture
def data(make, poems: Path) -> DataConfig:
    return make(paths=(f"{poems}/*.txt",))


def start(data: DataConfig, hold: str = "", go: Path | None = None, limit: int = 0) -> subprocess.Popen:
    request = json.dumps([dataclasses.asdict(data), hold, str(go), limit])
    return subprocess.Popen([sys.executable, "-c", PREPARE, request], stdout=subprocess.PIPE, text=True)


def read_until(process: subprocess.Popen, text: str) -> list[str]:
    lines = []
    for line in process.stdout:
        lines.append(line.strip())
        if text in line:
            return lines
    raise AssertionError(f"ended without {text!r}: {lines}")


def rest(process: subprocess.Popen) -> list[str]:
    return process.communicate(timeout=60)[0].split("\n")[:-1]


def tokens_folder(data: DataConfig) -> Path:
    return Path(data.cache) / "tokens"


def entries(data: DataConfig) -> list[str]:
    return sorted(path.name for path in tokens_folder(data).iterdir() if path.is_dir())


def folder(tokens: TokenData) -> Path:
    assert tokens.tokenizer is not None
    return tokens.tokenizer.parent


def test_of_two_processes_one_builds_and_the_other_waits(data: DataConfig, tmp_path: Path) -> None:
    go = tmp_path / "go"
    builder = start(data, "encoding", go)
    read_until(builder, "encoding")
    waiter = start(data)
    read_until(waiter, "another process is preparing the same data; waiting")
    assert entries(data)[0].endswith(".draft")  # nothing complete to be seen yet
    go.touch()
    built, waited = rest(builder), rest(waiter)
    assert len(waited) == 1  # it announced no work of its own
    assert json.loads(built[-1]) == json.loads(waited[-1]) == dataclasses.asdict(prepare(data, 8).facts)
    assert len(entries(data)) == 1


@pytest.mark.parametrize("moment", ["reading", "training", "encoding"])
def test_a_killed_builder_leaves_nothing_in_the_way(data: DataConfig, tmp_path: Path, moment: str) -> None:
    builder = start(data, moment, tmp_path / "go")
    read_until(builder, moment)
    builder.send_signal(signal.SIGKILL)
    builder.communicate()
    assert len(entries(data)) == 1
    said: list[str] = []
    prepared = prepare(data, 8, said.append)
    assert entries(data) == [folder(prepared).name]
    assert any(message.startswith("training") for message in said)
    elsewhere = prepare(dataclasses.replace(data, cache=str(tmp_path / "other")), 8)
    assert prepared.facts == elsewhere.facts


def test_drafts_of_others_are_cleaned_only_when_dead(data: DataConfig, tmp_path: Path) -> None:
    living = start(dataclasses.replace(data, vocab_size=265), "encoding", tmp_path / "go")
    dead = start(dataclasses.replace(data, vocab_size=266), "encoding", tmp_path / "never")
    for process in (living, dead):
        read_until(process, "encoding")
    dead.kill()
    dead.communicate()
    assert [name.endswith(".draft") for name in entries(data)] == [True, True]
    prepare(data, 8)
    assert sorted(name.endswith(".draft") for name in entries(data)) == [False, True]
    (tmp_path / "go").touch()
    assert json.loads(rest(living)[-1])["vocab_size"] == 265


def test_an_entry_is_built_once(data: DataConfig) -> None:
    said: list[str] = []
    first = prepare(data, 8, said.append)
    assert [message.split()[0] for message in said] == ["reading", "training", "encoding"]
    again = prepare(dataclasses.replace(data, data_seed=3, val_tokens=50), 16, said.append)
    assert len(said) == 3  # neither context, batch order nor evaluation size are part of the key
    np.testing.assert_array_equal(first.train, again.train)


@pytest.mark.parametrize(
    "change", [{"vocab_size": 271}, {"split_seed": 1}, {"val_fraction": 0.3}, {"max_bytes": 5000}]
)
def test_what_shapes_the_tokens_has_its_own_entry(data: DataConfig, change: dict) -> None:
    first, other = prepare(data, 8), prepare(dataclasses.replace(data, **change), 8)
    assert folder(first) != folder(other)
    assert first.facts.fingerprint == other.facts.fingerprint
    assert first.facts.tokens_sha256 != other.facts.tokens_sha256


@pytest.mark.parametrize("name", ["train.bin", "val.bin", "counts.bin", "tokenizer.json", "meta.json"])
@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_a_damaged_entry_is_said_and_rebuilt(data: DataConfig, name: str, damage: str) -> None:
    first = prepare(data, 8)
    path = folder(first) / name
    whole = path.read_bytes()
    if damage == "cut":
        path.write_bytes(whole[:-3])
    else:
        path.unlink()
    said: list[str] = []
    assert prepare(data, 8, said.append).facts == first.facts
    assert "is damaged; building it again" in said[0]
    assert path.read_bytes() == whole


def test_a_full_disk_is_one_error_and_no_entry(data: DataConfig) -> None:
    (told,) = [line for line in rest(start(data, limit=6000)) if line.startswith("UserError")]
    assert "cannot use the cache in" in told
    assert str(tokens_folder(data)) in told
    assert entries(data) == []
    assert prepare(data, 8).facts.documents == 20


def test_a_failed_build_leaves_no_draft(data: DataConfig, poems: Path) -> None:
    with pytest.raises(UserError):
        prepare(dataclasses.replace(data, vocab_size=5000), 8)
    assert entries(data) == []


def test_an_interrupted_build_leaves_no_draft(data: DataConfig) -> None:
    def interrupt(message: str) -> None:
        if message.startswith("encoding"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(data, 8, interrupt)
    assert entries(data) == []


def test_a_cache_that_is_no_folder_is_named(data: DataConfig, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match=r"cannot use the cache in .*/file/tokens(?s:.*)ABLATE_CACHE"):
        prepare(dataclasses.replace(data, cache=str(tmp_path / "file")), 8)
