"""Claims, heartbeats and states: one process at a time, and readers see who died."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ablate.record import Claim, Claimed, Heartbeat, RunFolder, State, Superseded, read_status
from ablate.record import claim as claims

HOLDER = """
    import sys, time
    from pathlib import Path
    from ablate.record import Claim, RunFolder
    Claim.take(RunFolder(Path(sys.argv[1])))
    print("claimed", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(folder: RunFolder) -> Iterator["subprocess.Popen[str]"]:
    """Another process that holds the run."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLDER), str(folder.path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "claimed\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def age(folder: RunFolder, seconds: float) -> None:
    """Make every sign of life that old."""
    then = time.time() - seconds
    for path in [folder.heartbeat, *folder.path.glob("claim.*")]:
        if path.exists():
            os.utime(path, (then, then))


def edit_owner(folder: RunFolder, **changes: object) -> None:
    """Claim and status as another machine or process would have written them."""
    for path in [folder.status, *folder.path.glob("claim.*")]:
        raw = json.loads(path.read_text())
        raw.get("owner", raw).update(changes)
        path.write_text(json.dumps(raw))


def test_states_from_queued_to_the_end(folder: RunFolder) -> None:
    assert (read_status(folder).state, read_status(folder).attempt) == (State.queued, 0)
    claim = Claim.take(folder)
    status = read_status(folder)
    assert (status.state, status.attempt) == (State.running, 1)
    assert status.owner is not None
    assert status.owner.pid == os.getpid()
    claim.finish(State.preempted, "SIGTERM at step 7")
    status = read_status(folder)
    assert (status.state, status.reason, status.attempt) == (State.preempted, "SIGTERM at step 7", 1)
    Claim.take(folder).finish(State.done)
    assert (read_status(folder).state, read_status(folder).attempt) == (State.done, 2)
    assert sorted(p.name for p in folder.path.iterdir()) == [
        "claim.1",
        "claim.2",
        "config.yaml",
        "status.json",
    ]


def test_a_live_owner_keeps_the_run_and_is_named(folder: RunFolder, holder: "subprocess.Popen[str]") -> None:
    with pytest.raises(Claimed, match=rf"process {holder.pid} on \S+ since \d"):
        Claim.take(folder)
    assert read_status(folder).state is State.running


def test_a_killed_owner_is_seen_at_once(folder: RunFolder, holder: "subprocess.Popen[str]") -> None:
    holder.kill()
    deadline = time.monotonic() + 10  # a zombie counts as dead: nobody has waited for it yet
    while read_status(folder).state is State.running and time.monotonic() < deadline:
        time.sleep(0.01)
    status = read_status(folder)
    assert status.state is State.killed
    assert status.reason is not None
    assert "is gone" in status.reason
    assert status.owner is not None
    assert status.owner.pid == holder.pid
    assert Claim.take(folder).attempt == 2


def test_a_later_process_with_the_same_pid_is_not_the_owner(folder: RunFolder) -> None:
    Claim.take(folder)
    edit_owner(folder, start=1)
    assert read_status(folder).state is State.killed
    assert Claim.take(folder).attempt == 2


@pytest.mark.parametrize(
    "elsewhere", [{"host": "other"}, {"namespace": "pid:[1]"}, {"boot": "x"}, {"start": None}]
)
def test_a_process_out_of_sight_is_judged_by_its_heartbeat(
    folder: RunFolder, elsewhere: dict[str, object]
) -> None:
    claim = Claim.take(folder)
    edit_owner(folder, pid=1, **elsewhere)  # pid 1 lives here, and must not be asked or harmed
    with pytest.raises(Claimed):
        Claim.take(folder)
    age(folder, 59)
    assert read_status(folder).state is State.running
    age(folder, 61)
    status = read_status(folder)
    assert status.state is State.killed
    assert status.reason is not None
    assert "no heartbeat for 61 s" in status.reason
    folder.heartbeat.touch()
    assert read_status(folder).state is State.running
    age(folder, 61)
    assert Claim.take(folder).attempt == 2
    with pytest.raises(Superseded):
        claim.check()
    with pytest.raises(Superseded):
        claim.finish(State.done)
    assert read_status(folder).state is State.running


def test_staleness_is_measured_by_the_clock_of_the_file_system(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    Claim.take(folder)
    edit_owner(folder, host="other")
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 3600)  # this host's clock is an hour fast
    assert read_status(folder).state is State.running
    assert read_status(folder, now=real() + 100).state is State.killed


def test_a_folder_that_cannot_be_written_is_judged_by_the_hosts_clock(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    Claim.take(folder)
    edit_owner(folder, host="other")
    age(folder, 90)

    def refuse(*_: object) -> int:
        raise PermissionError(13, "read-only")

    monkeypatch.setattr(os, "open", refuse)
    status = read_status(folder)
    assert status.state is State.killed
    assert status.reason is not None
    assert "read-only" in status.reason


def test_a_halted_process_here_is_killed_by_its_successor(
    folder: RunFolder, holder: "subprocess.Popen[str]"
) -> None:
    holder.send_signal(signal.SIGSTOP)
    with pytest.raises(Claimed):  # its heartbeat is still fresh
        Claim.take(folder)
    age(folder, 61)
    assert Claim.take(folder).attempt == 2
    assert holder.wait(timeout=10) == -signal.SIGKILL


def test_a_process_that_beats_again_after_a_pause_is_left_alone(
    folder: RunFolder, holder: "subprocess.Popen[str]", monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a suspended machine wakes: everything is stale, and a moment later nothing is."""
    age(folder, 3600)
    monkeypatch.setattr(claims.time, "sleep", lambda _: folder.heartbeat.touch())
    with pytest.raises(Claimed):
        Claim.take(folder)
    assert holder.poll() is None


def test_a_silent_process_here_gets_one_beat_and_is_killed(
    folder: RunFolder, holder: "subprocess.Popen[str]", monkeypatch: pytest.MonkeyPatch
) -> None:
    age(folder, 3600)
    monkeypatch.setattr(claims, "BEAT_S", -0.7)
    assert Claim.take(folder).attempt == 2
    assert holder.wait(timeout=10) == -signal.SIGKILL


def test_a_process_does_not_kill_itself(folder: RunFolder) -> None:
    Claim.take(folder)
    age(folder, 3600)
    assert Claim.take(folder).attempt == 2


def race(paths: list[str], results: "multiprocessing.Queue[tuple[str, str]]", start: float) -> None:
    """Try to claim each folder at its moment."""
    for i, path in enumerate(paths):
        while time.time() < start + i * 0.02:
            pass
        try:
            claim = Claim.take(RunFolder(Path(path)))
            results.put((path, f"won {claim.attempt}"))
        except Claimed as error:
            results.put((path, "named" if " is being trained by process " in str(error) else str(error)))
    results.put(("", "end"))
    time.sleep(60)  # stay alive: a dead winner would be replaced


def test_of_many_claimers_exactly_one_wins(new_folder: Callable[[], RunFolder]) -> None:
    folders = [new_folder() for _ in range(45)]
    fresh, ended, dead = folders[0::3], folders[1::3], folders[2::3]
    for folder in ended:
        Claim.take(folder).finish(State.preempted)
    for folder in dead:
        Claim.take(folder)
        edit_owner(folder, start=1)
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[tuple[str, str]] = context.Queue()
    paths = [str(f.path) for f in folders]
    start = time.time() + 2.0
    crowd = [context.Process(target=race, args=(paths, results, start), daemon=True) for _ in range(4)]
    for process in crowd:
        process.start()
    outcomes: list[tuple[str, str]] = []
    while sum(word == "end" for _, word in outcomes) < len(crowd):
        outcomes.append(results.get(timeout=60))
    for process in crowd:
        process.kill()
    for folder in folders:
        attempt = 1 if folder in fresh else 2
        words = Counter(word for path, word in outcomes if path == str(folder.path))
        assert words == {f"won {attempt}": 1, "named": 3}


def test_the_heartbeat_beats_until_a_newer_attempt_begins(folder: RunFolder) -> None:
    Claim.take(folder)
    with Heartbeat(folder, every=0.01) as heart:
        wait_for(lambda: beat_after(folder))
        folder.claim(2).touch()
        heart._thread.join(timeout=10)
        assert not heart._thread.is_alive()


def test_the_heartbeat_ends_with_its_block(folder: RunFolder) -> None:
    Claim.take(folder)
    with Heartbeat(folder, every=0.01) as heart:
        wait_for(lambda: beat_after(folder))
    assert not heart._thread.is_alive()


def test_a_heartbeat_survives_a_file_system_that_is_away_for_a_moment(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    Claim.take(folder)
    faults = iter([OSError(5, "input/output error"), OSError(116, "stale file handle")])
    real = Path.touch

    def flaky(path: Path) -> None:
        fault = next(faults, None)
        if fault is not None:
            raise fault
        real(path)

    with Heartbeat(folder, every=0.01):
        monkeypatch.setattr(Path, "touch", flaky)
        wait_for(lambda: beat_after(folder))


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"state":"odd"}', '{"state":"running"}'])
def test_a_missing_or_damaged_status_is_made_good_from_the_claims(
    folder: RunFolder, content: str | None
) -> None:
    Claim.take(folder)
    folder.status.unlink()
    if content is not None:
        folder.status.write_text(content)
    status = read_status(folder)
    assert (status.state, status.attempt) == (State.running, 1)
    assert status.owner is not None
    assert status.owner.pid == os.getpid()


def test_a_status_of_a_superseded_attempt_does_not_count(folder: RunFolder) -> None:
    old = Claim.take(folder)
    edit_owner(folder, start=1)
    Claim.take(folder)
    old._write(State.done, None)  # slipped past its check
    assert (read_status(folder).state, read_status(folder).attempt) == (State.running, 2)


def test_a_folder_without_anything_is_queued(tmp_path: Path) -> None:
    assert read_status(RunFolder(tmp_path / "nowhere")).state is State.queued
    assert read_status(RunFolder(tmp_path)).state is State.queued


def test_a_claim_without_content_is_alive_until_it_is_old(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "PATIENCE_S", 0.05)
    folder.claim(1).touch()  # its process is just between creating and writing it, or died there
    with pytest.raises(Claimed, match="another process"):
        Claim.take(folder)
    age(folder, 61)
    assert Claim.take(folder).attempt == 2


def test_the_scheduler_job_is_recorded(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    Claim.take(folder)
    assert json.loads(folder.claim(1).read_text())["job"] == "4711"
    with pytest.raises(Claimed, match="job 4711"):
        Claim.take(folder)


def beat_after(folder: RunFolder) -> bool:
    """Age the heartbeat, then see whether it is touched."""
    os.utime(folder.heartbeat, (0, 0))
    time.sleep(0.03)
    return folder.heartbeat.stat().st_mtime > 0


def wait_for(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
