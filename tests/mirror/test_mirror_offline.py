"""The mirror offline: whole runs or none, one a folder, no socket, and the record untouched."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.mirror.mirror_studies import Made, study

from ablate.mirror import Condition, Sent, read_ledger, rows_of, wandb_home
from ablate.mirror.transaction import fault, records
from ablate.record import Run, RunFolder, State

pytestmark = [pytest.mark.wandb, pytest.mark.usefixtures("no_account")]
WAIT_S = 300.0  # only so that a hang ends
# In a network namespace of its own, where nothing answers, the kernel counts every attempt; asked when all
# processes have ended, because wandb's telemetry goes out at exit.
COUNTED = """
"$@" || exit 9
sleep 1
awk '/^(Ip|Tcp|Udp):/ {
  if (!($1 in heads)) { heads[$1] = $0; next }
  n = split(heads[$1], names); split($0, counts)
  for (i = 2; i <= n; i++) if (counts[i] != 0 && names[i] ~ /^Out|^ActiveOpens/) print "TRIED", $1 names[i]
}' /proc/net/snmp
"""


def words(root: Path, *more: str) -> list[str]:
    return ["wandb", "mirror", "s", "--root", str(root), *more]


def mirror(
    root: Path, *more: str, env: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "ablate", *words(root, *more)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
        env={**os.environ, **(env or {})},
    )


def built(root: Path) -> list[Path]:
    """The offline runs of training runs, by name."""
    return [p for p in sorted(wandb_home(root, "s").glob("offline-run-*")) if "study-s" not in p.name]


def log(folder: Path) -> Path:
    (found,) = folder.glob("run-*.wandb")
    return found


def sent(folder: RunFolder) -> Sent:
    ledger = read_ledger(folder.path)
    assert ledger is not None
    assert ledger.offline is not None
    return ledger.offline


def history(path: Path) -> list[dict[str, Any]]:
    """The rows of a W&B log, wandb's own keys apart."""
    from wandb.proto import wandb_internal_pb2 as messages

    rows = []
    for raw in records(path.read_bytes()):
        record = messages.Record.FromString(raw)
        if record.WhichOneof("record_type") == "history":
            row = {
                "/".join(item.nested_key) or item.key: json.loads(item.value_json)
                for item in record.history.item
            }
            rows.append({key: value for key, value in row.items() if not key.startswith("_")})
    return rows


def expected(folder: RunFolder) -> list[dict[str, Any]]:
    run = Run(folder)
    return [dict(row) for row in rows_of(run, run.config.tracker.rows, ended=True)]


def record_files(root: Path) -> dict[str, bytes]:
    return {
        str(p): p.read_bytes()
        for p in sorted(root.rglob("*"))
        if p.is_file() and "wandb" not in p.relative_to(root).parts and p.name != "mirror.json"
    }


def test_each_run_becomes_one_whole_offline_run_and_the_record_stays(tmp_path: Path) -> None:
    runs = study(tmp_path)
    before = record_files(tmp_path)
    done = mirror(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "offline (no API key was found)" in done.stdout
    assert record_files(tmp_path) == before
    assert len(built(tmp_path)) == len(runs)
    for made in runs:
        place = made.folder.path.parent / str(sent(made.folder).where)
        assert history(log(place)) == expected(made.folder)
    again = mirror(tmp_path)
    assert again.returncode == 0
    assert len(again.stdout.splitlines()) == 2, "nothing was built again"


@pytest.mark.slow
def test_a_second_replay_holds_the_same_rows(tmp_path: Path) -> None:
    made = Made.queued(tmp_path, 1).whole()
    mirror(tmp_path)
    first = history(log(built(tmp_path)[0]))
    (made.folder.path / "mirror.json").unlink()
    mirror(tmp_path)
    (again,) = built(tmp_path)
    assert history(log(again)) == first


def test_no_socket_is_opened(tmp_path: Path) -> None:
    study(tmp_path)
    mirrors = [sys.executable, "-m", "ablate", *words(tmp_path)]
    command = ["unshare", "-rn", "sh", "-c", COUNTED, "sh", *mirrors]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
    except FileNotFoundError:
        pytest.skip("no unshare")
    if "unshare failed" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    assert "TRIED" not in done.stdout
    assert len(built(tmp_path)) == 4


@pytest.mark.slow
def test_a_resumed_run_replaces_its_older_self(tmp_path: Path) -> None:
    made = Made.queued(tmp_path, 1).begin().write(25).end(State.preempted)
    mirror(tmp_path)
    (first,) = built(tmp_path)
    made.begin(from_step=20).write(40, shift=0.3).end()
    mirror(tmp_path)
    (second,) = built(tmp_path)
    assert len(history(log(first if first.exists() else second))) == len(expected(made.folder))
    assert history(log(second)) == expected(made.folder)


def test_a_run_at_work_is_left_for_later(tmp_path: Path) -> None:
    made = Made.queued(tmp_path, 1).begin().write(25)
    with made.beating():
        assert mirror(tmp_path).returncode == 0
    assert built(tmp_path) == []
    assert read_ledger(made.folder.path) is None


@pytest.mark.slow
def test_a_killed_mirror_leaves_no_fragment(tmp_path: Path) -> None:
    made = Made.queued(tmp_path, 1, steps=4000, tracker={"rows": 4000}).whole()
    command = [sys.executable, "-m", "ablate", *words(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    build = wandb_home(tmp_path, "s") / ".mirror" / "build"
    deadline = time.monotonic() + WAIT_S
    while not any(p.stat().st_size > 50_000 for p in build.rglob("run-*.wandb")):
        assert time.monotonic() < deadline, "the log did not grow"
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert built(tmp_path) == []
    assert mirror(tmp_path).returncode == 0
    (place,) = built(tmp_path)
    assert fault(log(place), len(expected(made.folder))) is None
    assert history(log(place)) == expected(made.folder)


@pytest.mark.slow
def test_hostile_names_go_through(tmp_path: Path) -> None:
    notes = "<script>alert(1)</script> ${x} '\"; rm -rf /\n\tß × 試"
    made = Made.queued(
        tmp_path, 1, notes=notes, slug="a=.._b+c", tracker={"project": "p p'\"", "tags": ["<b>", "x" * 64]}
    ).whole()
    done = mirror(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (place,) = built(tmp_path)
    assert history(log(place)) == expected(made.folder)


@pytest.mark.slow
def test_a_damaged_record_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    bad, good = Made.queued(tmp_path, 1).whole(), Made.queued(tmp_path, 2, seed=1).whole()
    text = bad.folder.metrics().read_bytes()
    bad.folder.metrics().write_bytes(text.replace(b'"schema":1', b'"schema":9'))
    done = mirror(tmp_path)
    assert done.returncode == 1
    assert sent(bad.folder).state is Condition.degraded
    assert "schema" in str(sent(bad.folder).why)
    assert sent(good.folder).state is Condition.clean


@pytest.mark.slow
def test_a_full_disk_is_told_not_hidden(tmp_path: Path) -> None:
    made = Made.queued(tmp_path, 1, steps=400, tracker={"rows": 400}).whole()
    command = " ".join(["ulimit -f 100;", "exec", sys.executable, "-m", "ablate", *words(tmp_path)])
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "not whole" in done.stdout or "full" in done.stdout
    assert built(tmp_path) == []
    assert sent(made.folder).state is Condition.degraded
    assert mirror(tmp_path).returncode == 0
    assert sent(made.folder).state is Condition.clean


@pytest.mark.parametrize("word", ["disabled", "nonsense"])
def test_the_environment_is_heard(tmp_path: Path, word: str) -> None:
    study(tmp_path)
    done = mirror(tmp_path, env={"WANDB_MODE": word})
    assert done.returncode == 2
    assert f"WANDB_MODE={word}" in done.stderr
    assert built(tmp_path) == []
