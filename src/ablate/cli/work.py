"""What `train` and `sweep` share: launch with progress, count, say how to go on."""

import contextlib
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ablate.cli.codes import ALL_DONE, INTERRUPTED, SOME_FAILED, TERMINATED
from ablate.config import Config
from ablate.record import RunFolder, State
from ablate.sweep import Interrupted, Result, Task, Terms, WorkerError, launch
from ablate.view import Progress, clean

if TYPE_CHECKING:
    from ablate.mirror import Launched


def work(
    folders: Sequence[RunFolder], configs: Mapping[str, Config], resume: Sequence[str], wait: bool = True
) -> tuple[list[Result], int]:
    """Train the folders; the results and the exit code. `resume`: the command that goes on.

    How the launch goes about it (`sweep.jobs` and so on) is said by the first configuration. Runs that
    another process trains are waited for, or without `wait` come back as `running`.
    """
    tasks = [Task.of(folder, configs[folder.name]) for folder in folders]
    try:
        with Progress(configs) as progress:
            terms = replace(Terms.of(configs[folders[0].name]), wait=wait)
            results = list(launch(tasks, progress, terms))
    except Interrupted as stop:
        import signal

        print(f"stopped: {left(len(folders), stop.results)}", file=sys.stderr)
        print(f"go on with: {shlex.join(resume)}", file=sys.stderr)
        return list(stop.results), INTERRUPTED if stop.number == signal.SIGINT else TERMINATED
    except (WorkerError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return [], SOME_FAILED
    if len(results) < len(folders):
        print(f"stopped after a failure (sweep.on_failure): {left(len(folders), results)}", file=sys.stderr)
        print(f"go on with: {shlex.join(resume)}", file=sys.stderr)
    failed = len(results) < len(folders) or any(r.state is not State.done for r in results)
    return results, SOME_FAILED if failed else ALL_DONE


@contextlib.contextmanager
def mirrored(
    folders: Sequence[RunFolder], configs: Mapping[str, Config], overrides: Sequence[str] = ()
) -> Iterator["Beside"]:
    """The W&B mirror runs beside what the block does (`tracker.mode`), and is waited for in the end.

    The block says `over(code)` when training is over; until then the mirror follows it. Raises UserError for
    a mode that cannot be had.
    """
    from ablate.mirror import start_mirror

    tracker = configs[folders[0].name].tracker if folders else None
    beside = Beside(None if tracker is None else start_mirror(folders, tracker, _asked(overrides), _say))
    try:
        yield beside
    finally:
        beside.over()
    beside.wait()


def check_mode(config: Config, overrides: Sequence[str]) -> None:
    """Raise UserError for a mode of the mirror that cannot be had, before anything is begun."""
    from ablate.mirror import resolve_mode

    resolve_mode(config.tracker.mode, _asked(overrides))


def _asked(overrides: Sequence[str]) -> bool:
    return any(text.lstrip("+").startswith("tracker.mode=") for text in overrides)


class Beside:
    """A launch's mirror, if it has one."""

    def __init__(self, mirror: "Launched | None") -> None:
        self._mirror = mirror

    def over(self, code: int = ALL_DONE) -> None:
        """Training is over, or was interrupted: then nobody waits any more."""
        if self._mirror is not None:
            self._mirror.ended()
        if code in (INTERRUPTED, TERMINATED):
            self._mirror = None

    def wait(self) -> None:
        """Wait for the mirror's end, at most `tracker.finish_timeout`, and say how far it came."""
        if self._mirror is not None:
            self._mirror.wait(_say)


def _say(text: str) -> None:
    print(clean(text), flush=True)


def resume_command(command: str, overrides: Sequence[str]) -> list[str]:
    """The command that goes on after an interruption: what `sweep.redo` asked for has begun already."""
    return ["ablate", command, *(text for text in overrides if not text.startswith("sweep.redo="))]


def left(total: int, results: Sequence[Result]) -> str:
    """How far a launch got: `1 done, 1 preempted (checkpoint kept), 2 not begun`."""
    counts = Counter(str(r.state) for r in results)
    words = [f"{n} {state}" for state, n in sorted(counts.items())]
    if (rest := total - len(results)) > 0:
        words.append(f"{rest} not begun")
    return ", ".join(words)
