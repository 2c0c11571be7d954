"""One mirror process, from its claim to its end."""

import contextlib
import os
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path

from ablate.config import TrackerMode
from ablate.mirror import service
from ablate.mirror.ledger import wandb_home
from ablate.mirror.mirror import Mirror
from ablate.record import Claim, Claimed, Heartbeat, RunFolder, State, find_runs, read_status

ALL_CLEAN, SOME_NOT = 0, 1
LAUNCHED_NICE = 19
Say = Callable[[str], None]


def mirror_study(
    root: Path, study: str, mode: TrackerMode, finish_timeout: float, watch: bool, launched: bool, say: Say
) -> int:
    """Mirror a study, once or until nothing runs (`watch`), or until standard input is closed (`launched`).

    Returns 0, or 1 if some run could not be brought to W&B. A second mirror of a study says who is at it and
    leaves; a launched one waits for its turn: the first may leave before this launch's runs have ended.
    """
    home = wandb_home(root, study)
    place = RunFolder(home / ".mirror")
    place.path.mkdir(parents=True, exist_ok=True)
    over = _input_closed if launched else lambda: not _at_work(root, study)
    claim = take_claim(place, finish_timeout, over if launched else None)
    if claim is None:
        say(f"{study}: {who_mirrors(place)} is mirroring it")
        return ALL_CLEAN
    service.prepare(place.path)
    mirror = Mirror(root, study, mode, finish_timeout, say)
    with Heartbeat(place):
        if watch or launched:
            mirror.watch(over)
        else:
            mirror.settle()
        mirror.study_run()
        mirror.write_troubles()
        stuck = not mirror.close()
        claim.finish(State.done)
    counts, troubles = mirror.counts()
    say(f"{study}: " + (", ".join(f"{n} {word}" for word, n in sorted(counts.items())) or "no runs"))
    code = SOME_NOT if troubles else ALL_CLEAN
    if stuck:  # wandb's own exit would wait for the service again, run by run
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def take_claim(place: RunFolder, patience: float, over: Callable[[], bool] | None) -> Claim | None:
    """The right to mirror; None while another process has it (`over`: waited for, and `patience` beyond)."""
    deadline: float | None = None
    while True:
        try:
            claim = Claim.take(place)
            break
        except Claimed:
            if over is None or (deadline is not None and time.monotonic() > deadline):
                return None
        if deadline is None and over():
            deadline = time.monotonic() + patience
        time.sleep(0.5)
    for number in range(1, claim.attempt):
        with contextlib.suppress(OSError):
            place.claim(number).unlink()
    return claim


def who_mirrors(place: RunFolder) -> str:
    """The process that has the claim, in words."""
    owner = read_status(place).owner
    return "another process" if owner is None else f"process {owner.pid} on {owner.host}"


def _at_work(root: Path, study: str) -> bool:
    return any(read_status(folder).state is State.running for folder in find_runs(root, study))


def _input_closed() -> bool:
    """Has whoever holds the other end of standard input let go of it?"""
    ready, _, _ = select.select([0], [], [], 0)
    return bool(ready) and os.read(0, 1) == b""
