"""What a launch shows while it works: live bars in a terminal, readable lines elsewhere."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
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

LINE_S, LINE_SHARE = 10.0, 0.1  # without a terminal: a line each tenth of a run, if 10 s have passed
LOOK_S = 0.5  # between two looks at the newest rows
VERDICT_SHARE = 0.2  # of the run: before that (or within warm-up) a verdict says nothing
VERDICT_COST = 20  # the verdict so far may take at most one part in this of the time


class Progress:
    """A launch watcher: `with Progress(configs) as watch: launch(folders, watch)`.

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
        self.current: _Current | None = None
        self.live: Live | None = None

    def __enter__(self) -> "Progress":
        if self.stream.isatty():
            from rich.live import Live

            from ablate.view.table import console

            waiting = "starting the worker (it loads torch)"
            self.live = Live(waiting, console=console(self.stream), transient=True, refresh_per_second=4)
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()

    def tick(self, folder: RunFolder) -> None:
        """The launcher's word that `folder` is at work."""
        now = self.clock()
        if self.current is None or self.current.folder.path != folder.path:
            self.current = _Current(folder, self.configs[folder.name], self.names[folder.name], now)
            if self.live is None:
                self._line(f"{self._count(1)} {self.current.name}: started")
        if now - self.current.looked >= LOOK_S or self.current.looked == 0:
            self.current.look(now)
            if self.live is not None:
                self.live.update(self._drawn())
            elif self.current.due(now):
                self._line(f"{self._count(1)} {self.current.name}: {self.current.words(self._eta(now))}")

    def ended(self, result: Result) -> None:
        """The launcher's word that a run has ended."""
        self.done += 1
        name = self.names[result.folder.name]
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
        self.current = None

    def _count(self, extra: int = 0) -> str:
        return f"[{self.done + extra}/{self.total}]"

    def _line(self, text: str) -> None:
        if self.live is not None:
            from rich.text import Text

            self.live.console.print(Text(text))
        else:
            print(text, file=self.stream, flush=True)

    def _eta(self, now: float) -> float | None:
        """Seconds to the end of all runs: this one's rest, and the others at the average so far."""
        rest = None if self.current is None else self.current.follower.eta()
        after = self.total - self.done - 1
        if after <= 0 or rest is None:
            return rest
        each = (now - self.began + rest) / (self.done + 1)
        return rest + after * each

    def _drawn(self) -> "Group":
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        assert self.current is not None
        counts = ", ".join(f"{n} {clean(word)}" for word, n in sorted(self.verdicts.items()))
        head = f"{self.done}/{plural(self.total, 'run')} finished" + (f" ({counts})" if counts else "")
        bar = ProgressBar(total=self.current.follower.steps, completed=self.current.follower.step, width=40)
        name = Text(f"{self._count(1)} {self.current.name}", style="bold")
        return Group(Text(head), name, Text(self.current.words(self._eta(self.clock()))), bar)


class _Current:
    """The run at work, and what was last said of it."""

    def __init__(self, folder: RunFolder, config: Config, name: str, now: float) -> None:
        self.folder, self.config, self.name = folder, config, name
        self.follower = Follower(folder, config.optim.steps)
        self.looked = 0.0
        self.said_at, self.said_step = now, 0
        self.verdict, self.judged, self.cost = "", now, 0.0

    def look(self, now: float) -> None:
        self.follower.look(now)
        self.looked = now
        if self._judgeable() and now - self.judged >= self.cost * VERDICT_COST:
            started = time.perf_counter()
            try:
                self.verdict = str(verdict_so_far(Run(self.folder)))
            except (UserError, OSError):  # an odd record is for `ablate show` to explain; the run goes on
                self.verdict = ""
            self.judged, self.cost = now, time.perf_counter() - started

    def _judgeable(self) -> bool:
        optim = self.config.optim
        return self.follower.step > max(optim.warmup, VERDICT_SHARE * optim.steps)

    def due(self, now: float) -> bool:
        """Is a line due (without a terminal)? Each tenth of the run, at least 10 s apart."""
        step = self.follower.step
        due = now - self.said_at >= LINE_S and step - self.said_step >= LINE_SHARE * self.follower.steps
        if due:
            self.said_at, self.said_step = now, step
        return due

    def words(self, eta: float | None) -> str:
        f = self.follower
        parts = [f"step {f.step}/{f.steps}", f"loss {loss(f.loss)}"]
        if f.val is not None:
            parts.append(f"val {loss(f.val)}")
        if self.verdict:
            parts.append(f"{self.verdict} so far")
        if (speed := f.speed()) is not None:
            tokens = speed * self.config.optim.batch * self.config.model.context
            parts.append(f"{tokens:,.0f} tokens/s")
        if eta is not None:
            parts.append(f"{duration(eta)} left")
        return ", ".join(parts)


def verdict_so_far(run: Run) -> Kind:
    """What the verdict would be if the run had been planned to end with its newest row."""
    curve = run.curve()
    ended = replace(curve, steps=len(curve.loss_R), complete=True)
    return judge(ended, run.config.verdict).kind


def shown_lines(text: str, indent: str = "") -> str:
    """Several lines made printable, each indented."""
    return "\n".join(indent + clean(line) for line in text.splitlines())
