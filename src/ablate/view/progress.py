"""What a launch shows while it works: live bars in a terminal, readable lines elsewhere."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TextIO

from ablate.config import Config, UserError
from ablate.record import Run, RunFolder, State
from ablate.sweep import Result
from ablate.verdict import Kind, judge
from ablate.view.facts import final_val
from ablate.view.follow import Follower
from ablate.view.names import run_names
from ablate.view.text import clean, duration, loss, plural

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live

LINE_S = 10.0  # without a terminal: between two lines on the runs at work
LOOK_S = 0.5  # between two looks at the newest rows
FEW = 4  # runs whose beginnings are told, too
SHOWN = 8  # runs at work that are shown one by one
VERDICT_SHARE = 0.2  # of the run: before that (or within warm-up) a verdict says nothing
VERDICT_COST = 20  # verdicts so far may take at most one part in this of the time


class Progress:
    """A launch watcher: `with Progress(configs) as watch: launch(tasks, watch)`.

    `configs` maps the runs' names to configurations: the runs to train, in order.
    """

    def __init__(
        self,
        configs: Mapping[str, Config],
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.configs, self.stream, self.clock = configs, stream or sys.stdout, clock
        self.names = run_names(configs)
        self.total, self.done = len(configs), 0
        self.verdicts: Counter[str] = Counter()
        self.began = clock()
        self.said_at = self.looked_at = self.began
        self.at_work: dict[str, _AtWork] = {}
        self.steps_ahead = sum(config.optim.steps for config in configs.values())
        self.steps_done = 0  # of runs that ended here
        self.live: Live | None = None

    def __enter__(self) -> "Progress":
        if self.stream.isatty():
            from rich.live import Live

            from ablate.view.table import console

            waiting = "starting (torch is being loaded)"
            self.live = Live(waiting, console=console(self.stream), transient=True, refresh_per_second=4)
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()

    def tick(self, at_work: Sequence[RunFolder]) -> None:
        """The launcher's word on which runs are at work."""
        now = self.clock()
        fresh = [folder for folder in at_work if folder.name not in self.at_work]
        for folder in fresh:
            name = self.names[folder.name]
            self.at_work[folder.name] = _AtWork(folder, self.configs[folder.name], name, now)
            if self.live is None and self.total <= FEW:
                self._line(f"{self._count(1)} {name}: started")
        if fresh or now - self.looked_at >= LOOK_S:
            self._look(now)
            if self.live is not None:
                self.live.update(self._drawn(now))
        if self.live is None and now - self.said_at >= LINE_S:
            self.said_at = now
            if any(run.follower.step for run in self.at_work.values()):
                self._line(self._summary(now))

    def ended(self, result: Result) -> None:
        """The launcher's word that a run has ended."""
        self.done += 1
        name = self.names[result.folder.name]
        left = self.at_work.pop(result.folder.name, None)
        if left is None:  # it was done by another process, or refused
            self.steps_ahead -= self.configs[result.folder.name].optim.steps
        else:
            self.steps_ahead -= left.begun
            self.steps_done += left.follower.steps - left.begun
        if result.state is State.done:
            summary = Run(result.folder).summary or {}
            self.verdicts[str(summary.get("verdict", "?"))] += 1
            final = loss(final_val(summary))
            self._line(f"{self._count()} {name}: {clean(summary.get('verdict', '?'))}, final val {final}")
        else:
            self.verdicts[str(result.state)] += 1
            reason = shown_lines(result.reason or "").strip()
            self._line(f"{self._count()} {name}: {result.state}{f': {reason}' if reason else ''}")
            if result.log:
                self._line(f"  the end of {clean(result.folder.stdout)}:")
                self._line(shown_lines(result.log, "    "))

    def note(self, text: str) -> None:
        """The launcher's word on anything else."""
        self._line(shown_lines(text))

    def _look(self, now: float) -> None:
        self.looked_at = now
        for run in self.at_work.values():
            run.look(now, VERDICT_COST * len(self.at_work))

    def _count(self, extra: int = 0) -> str:
        return f"[{self.done + extra}/{self.total}]"

    def _line(self, text: str) -> None:
        if self.live is not None:
            from rich.text import Text

            self.live.console.print(Text(text))
        else:
            print(text, file=self.stream, flush=True)

    def eta(self, now: float) -> float | None:
        """Seconds to the end of all runs, at the steps a second of this launch so far."""
        begun = sum(run.begun for run in self.at_work.values())
        done = self.steps_done + sum(run.follower.step - run.begun for run in self.at_work.values())
        if done <= 0 or now <= self.began:
            return None
        return max(0.0, self.steps_ahead - begun - done) * (now - self.began) / done

    def _left(self, now: float) -> str:
        eta = self.eta(now)
        return "" if eta is None else f", {duration(eta)} left"

    def _summary(self, now: float) -> str:
        """One line: the only run with everything known of it, or several in short."""
        if len(self.at_work) == 1:
            (run,) = self.at_work.values()
            return f"{self._count(1)} {run.name}: {run.words()}{self._left(now)}"
        shown = "; ".join(run.short() for run in list(self.at_work.values())[:SHOWN])
        more = f"; and {len(self.at_work) - SHOWN} more" if len(self.at_work) > SHOWN else ""
        return f"{self._head()}: {shown}{more}{self._left(now)}"

    def _head(self) -> str:
        counts = ", ".join(f"{n} {clean(word)}" for word, n in sorted(self.verdicts.items()))
        return f"{self.done}/{plural(self.total, 'run')} finished" + (f" ({counts})" if counts else "")

    def _drawn(self, now: float) -> "Group":
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        done = self.steps_done + sum(run.follower.step for run in self.at_work.values())
        ahead = max(1, self.steps_ahead)
        shown = [Text(f"{run.name}: {run.words()}") for run in list(self.at_work.values())[:SHOWN]]
        if (more := len(self.at_work) - SHOWN) > 0:
            shown.append(Text(f"and {more} more at work"))
        bar = ProgressBar(total=ahead, completed=min(done, ahead), width=40)
        return Group(Text(self._head() + self._left(now)), *shown, bar)


class _AtWork:
    """A run at work, and what is known of it."""

    def __init__(self, folder: RunFolder, config: Config, name: str, now: float) -> None:
        self.folder, self.config, self.name = folder, config, name
        self.follower = Follower(folder, config.optim.steps)
        self.begun = 0  # the step at which it was first seen: what a resumed run need not train again
        self.seen = False
        self.verdict, self.judged, self.cost = "", now, 0.0

    def look(self, now: float, spare: int) -> None:
        self.follower.look(now)
        if not self.seen and self.follower.step:
            self.seen = True
            self.begun = max(0, self.follower.step - 1) if self.resumed else 0
        if self._judgeable() and now - self.judged >= self.cost * spare:
            started = time.perf_counter()
            try:
                self.verdict = str(verdict_so_far(Run(self.folder)))
            except (UserError, OSError):  # an odd record is for `ablate show` to explain; the run goes on
                self.verdict = ""
            self.judged, self.cost = now, time.perf_counter() - started

    def _judgeable(self) -> bool:
        optim = self.config.optim
        return self.follower.step > max(optim.warmup, VERDICT_SHARE * optim.steps)

    @property
    def resumed(self) -> bool:
        """Does its present attempt go on from a checkpoint?"""
        return self.folder.checkpoint.is_dir() and len(list(self.folder.path.glob("claim.*"))) > 1

    def short(self) -> str:
        """Name, progress and loss."""
        f = self.follower
        return f"{self.name} {f.step}/{f.steps} loss {loss(f.loss)}"

    def words(self) -> str:
        """Everything known of it, in a line."""
        f = self.follower
        parts = [f"step {f.step}/{f.steps}", f"loss {loss(f.loss)}"]
        if f.val is not None:
            parts.append(f"val {loss(f.val)}")
        if self.verdict:
            parts.append(f"{self.verdict} so far")
        if (speed := f.speed()) is not None:
            tokens = speed * self.config.optim.batch * self.config.model.context
            parts.append(f"{tokens:,.0f} tokens/s")
        return ", ".join(parts)


def verdict_so_far(run: Run) -> Kind:
    """What the verdict would be if the run had been planned to end with its newest row."""
    curve = run.curve()
    ended = replace(curve, steps=len(curve.loss_R), complete=True)
    return judge(ended, run.config.verdict).kind


def shown_lines(text: str, indent: str = "") -> str:
    """Several lines made printable, each indented."""
    return "\n".join(indent + clean(line) for line in text.splitlines())
