"""The thin layer that calls wandb: open a run, give it rows, finish it; everything else is translated.

wandb's own ways that this answers to (measured with 0.31): an init without a key prompts or fails, so
nothing is opened before the mode is known; a Settings object that is used twice leaks the first run's id;
names in the environment (WANDB_RUN_ID, …) apply to every run of a process; a log file that did not fit on
the disk, and an upload that the service refused, both end in success; after the death of wandb-core every
call fails until `teardown`, which fails too, once.
"""

import contextlib
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ablate.config import TrackerMode
from ablate.mirror.facts import Facts
from ablate.mirror.rows import STEP, Row

# Of one run, or of an agent's: they would apply to every run that this process mirrors.
_OF_ONE_RUN = (
    "WANDB_RUN_ID", "WANDB_RESUME", "WANDB_NAME", "WANDB_NOTES", "WANDB_TAGS", "WANDB_JOB_TYPE",
    "WANDB_RUN_GROUP", "WANDB_DIR", "WANDB_MODE", "WANDB_SWEEP_ID", "WANDB_SWEEP_PARAM_PATH", "WANDB_PROJECT",
    "WANDB_RUN_NAME", "WANDB_RESUME_FROM", "WANDB_FORK_FROM",
)  # fmt: skip
INIT_TIMEOUT_S = 20.0
_REFUSALS = re.compile(r"\b(401|403|404)\b|unauthorized|forbidden|permission|not found", re.IGNORECASE)


class Trouble(Exception):
    """Mirroring a run did not work; the text says why."""


class Refused(Trouble):
    """The service does not want it; trying again would not help."""


class Unreachable(Trouble):
    """The service did not answer in time."""


class CoreDied(Trouble):
    """W&B's own process is gone; a new one can be begun."""


def prepare(home: Path) -> None:
    """Make wandb quiet and keep its files below `home`; before the first import of wandb in this process."""
    for name in _OF_ONE_RUN:
        os.environ.pop(name, None)
    os.environ["WANDB_ERROR_REPORTING"] = "false"  # the one thing that opens a socket offline
    os.environ["WANDB_SILENT"] = "true"
    for kind in ("CACHE", "CONFIG", "DATA"):
        folder = home / kind.lower()
        folder.mkdir(parents=True, exist_ok=True)
        # A user's settings (base URL) lie in the configuration folder: that one stays where it is.
        if kind != "CONFIG":
            os.environ[f"WANDB_{kind}_DIR"] = str(folder)


@dataclass(eq=False)
class Opened:
    """A W&B run that takes rows. `refused` is set (on a thread of wandb's) when its upload was stopped."""

    run: Any
    offline: bool
    refused: list[str] = field(default_factory=list)

    @property
    def url(self) -> str | None:
        return None if self.offline else self.run.url

    @property
    def folder(self) -> Path:
        """Where wandb keeps the run's files."""
        return Path(self.run.settings.sync_dir)

    def log(self, row: Row) -> None:
        """One row at its step. Raises CoreDied."""
        with translated():
            self.run.log(row, step=int(row[STEP]))

    def log_media(self, items: Mapping[str, Any], step: int) -> None:
        """Pages, tables and figures. Raises CoreDied."""
        with translated():
            self.run.log(dict(items), step=step)

    def finish(self, summary: Mapping[str, Any], exit_code: int) -> None:
        """Write the summary and end the run; returns after `finish_timeout` at the latest. Raises Trouble."""
        with translated():
            self.run.summary.update(dict(summary))
            self.run.finish(exit_code=exit_code)


def open_run(
    facts: Facts,
    mode: TrackerMode,
    folder: Path,
    finish_timeout: float,
    resume: bool = False,
    sweep: str | None = None,
) -> Opened:
    """Begin a run, or go on with it (`resume`, online), with its files below `folder`. Raises Trouble."""
    import wandb

    (folder / "wandb").mkdir(parents=True, exist_ok=True)  # without it wandb prints, whatever silent says
    refused: list[str] = []
    settings = wandb.Settings(
        silent=True,
        console="off",
        x_disable_stats=True,
        x_disable_machine_info=True,  # of the mirror's machine, which need not be the run's
        disable_code=True,
        disable_git=True,
        x_save_requirements=False,
        x_transaction_log_flush_interval=1,
        init_timeout=INIT_TIMEOUT_S,
        finish_timeout=max(1.0, finish_timeout),
        stop_on_fatal_error=True,
        stop_fn=lambda: refused.append("the service refused the upload"),
        sweep_id=sweep,
    )
    with translated(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = wandb.init(
            mode="online" if mode is TrackerMode.online else "offline",
            dir=str(folder),
            id=facts.id,
            project=facts.project,
            entity=facts.entity,
            group=facts.group,
            job_type=facts.job_type,
            name=facts.name,
            notes=facts.notes,
            tags=list(facts.tags),
            config=dict(facts.config),
            resume="allow" if resume else None,
            reinit="create_new",
            settings=settings,
        )
        if run.id != facts.id:
            raise Trouble(f"wandb opened run {run.id} in place of {facts.id}")
        if not Path(run.settings.sync_dir).resolve().is_relative_to(folder.resolve()):
            raise Trouble(f"wandb writes to {run.settings.sync_dir}: {folder} cannot be written")
        run.define_metric(STEP, hidden=True)
        run.define_metric("*", step_metric=STEP)
    return Opened(run, mode is not TrackerMode.online, refused)


def restart() -> None:
    """Forget a wandb-core that died; the next `open_run` starts another one."""
    import wandb

    with contextlib.suppress(Exception):
        wandb.teardown()


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """wandb's errors as ours."""
    from wandb.errors import AuthenticationError, CommError, UsageError

    try:
        yield
    except Trouble:
        raise
    except (AuthenticationError, UsageError) as error:
        raise Refused(_words(error)) from error
    except CommError as error:
        text = _words(error)
        raise (Refused if _REFUSALS.search(text) else Unreachable)(text) from error
    except (ConnectionError, EOFError, BrokenPipeError) as error:
        raise CoreDied(f"wandb-core died ({_words(error)})") from error
    except Exception as error:
        if _lost_core(error):
            raise CoreDied(f"wandb-core died ({_words(error)})") from error
        raise Trouble(_words(error)) from error


def _lost_core(error: Exception) -> bool:
    names = {cls.__name__ for cls in type(error).__mro__}
    return bool(names & {"MailboxClosedError", "HandleAbandonedError", "WandbServiceConnectionError"})


def _words(error: Exception) -> str:
    text = " ".join(str(error).split()) or "no message"
    return f"{type(error).__name__}: {text}"[:300]
