"""What a launcher does about the mirror: start it beside the runs, and wait for it in the end, not long."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ablate.config import TrackerConfig, TrackerMode
from ablate.mirror.facts import wandb_id
from ablate.mirror.ledger import Condition, Ledger, read_ledger, wandb_home, write_ledger
from ablate.mirror.mode import Resolved, resolve_mode
from ablate.record import RunFolder

Say = Callable[[str], None]


@dataclass(eq=False)
class Launched:
    """A mirror process beside a launch: `ended()` is said when training is over, `wait()` at the very end."""

    process: "subprocess.Popen[bytes]"
    root: Path
    study: str
    mode: TrackerMode
    patience: float
    folders: Sequence[RunFolder]

    def ended(self) -> None:
        """Tell it that no run is at work any more."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def wait(self, say: Say) -> None:
        """Wait for it, at most `tracker.finish_timeout`, and say how far it came. It goes on by itself."""
        try:
            self.process.wait(self.patience)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):  # whoever is tired of waiting need not
            say(f"W&B: the mirror goes on in the background (log: {self._log})")
            return
        say(f"W&B: {self._outcome()}")

    @property
    def _log(self) -> Path:
        return wandb_home(self.root, self.study) / ".mirror" / "stdout.log"

    def _outcome(self) -> str:
        counts: Counter[str] = Counter()
        url, why = None, None
        for folder in self.folders:
            ledger = read_ledger(folder.path)
            sent = None if ledger is None else ledger.of(self.mode)
            if sent is None:
                continue
            counts[str(sent.state)] += 1
            url = url or sent.where
            why = why or sent.why
        words = ", ".join(
            f"{n} {'mirrored' if word == Condition.clean else word}" for word, n in counts.items()
        )
        if not words:
            return f"nothing was mirrored (log: {self._log})"
        tail = f" ({why}; log: {self._log})" if why else ""
        if self.mode is TrackerMode.offline:
            home = wandb_home(self.root, self.study)
            return f"{words}{tail}: wandb leet {home}; upload: ablate wandb sync {self.study}"
        return f"{words}{tail}: {(url or '').partition('/runs/')[0]}"


def start_mirror(
    folders: Sequence[RunFolder],
    tracker: TrackerConfig,
    asked: bool,
    say: Say,
    environ: Mapping[str, str] = os.environ,
) -> Launched | None:
    """Start the mirror of the study that these runs belong to; None if it is off, or could not be started.

    `asked`: the mode was given on the command line. Raises UserError for online without a key.
    """
    if not folders or folders[0].path.parent.name == "reruns":
        return None
    resolved = resolve_mode(tracker.mode, asked, environ)
    if resolved.mode is TrackerMode.off:
        return None
    home = folders[0].path.parent
    if len(folders) == 1:
        take_agent(folders[0], environ)
    log = wandb_home(home.parent, home.name) / ".mirror" / "stdout.log"
    words = [sys.executable, "-m", "ablate", "wandb", "mirror", home.name, "--root", str(home.parent)]
    words += ["--mode", str(resolved.mode), "--finish-timeout", f"{tracker.finish_timeout:g}", "--launched"]
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "ab") as out:
            process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=out, stderr=out, start_new_session=True
            )
    except OSError as error:
        say(f"W&B: not mirrored: {error}")
        return None
    say(f"W&B: {_announced(resolved, home, tracker)}")
    return Launched(process, home.parent, home.name, resolved.mode, tracker.finish_timeout, folders)


def take_agent(folder: RunFolder, environ: Mapping[str, str]) -> None:
    """Note in mirror.json where a W&B agent wants the run (WANDB_RUN_ID without WANDB_SWEEP_ID is none)."""
    sweep, run = environ.get("WANDB_SWEEP_ID"), environ.get("WANDB_RUN_ID")
    if not sweep or not run:
        return
    known = read_ledger(folder.path) or Ledger(wandb_id(folder.name))
    if known.wandb_id != run:
        known = replace(known, wandb_id=run, online=None)
    wanted = replace(
        known, sweep=sweep, project=environ.get("WANDB_PROJECT"), entity=environ.get("WANDB_ENTITY")
    )
    write_ledger(folder.path, wanted)


def is_agents(environ: Mapping[str, str] = os.environ) -> bool:
    """Was this process started by a W&B agent?"""
    return bool(environ.get("WANDB_SWEEP_ID") and environ.get("WANDB_RUN_ID"))


def _announced(resolved: Resolved, home: Path, tracker: TrackerConfig) -> str:
    if resolved.mode is TrackerMode.offline:
        return f"offline ({resolved.why}), in {wandb_home(home.parent, home.name)}"
    return f"online ({resolved.why}), project {tracker.project or home.name}"
