"""Run folders in turn; whatever happens in one, the next one is carried out."""

import argparse
import faulthandler
import io
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ablate.worker.process import wait_passively

ALL_DONE, SOME_FAILED, BAD_USAGE, PREEMPTED = 0, 1, 2, 3


def main(argv: Sequence[str]) -> int:
    """Carry out the run folders named on the command line.

    Exit code: 0 all done (diverged runs included), 1 some failed or refused, 2 bad usage, 3 asked to stop:
    the current run is preempted and the rest was not begun. 130: stopped at once by a second SIGINT.
    """
    arguments = _parser().parse_args(argv)
    wait_passively()
    # Imports torch: only now, so that bad usage is told at once.
    from ablate.record import RunFolder
    from ablate.train import Interrupts
    from ablate.worker.run import End, carry_out

    faulthandler.enable()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # the log is read while the run goes on
    failed = False
    try:
        with Interrupts() as interrupts:
            for path in arguments.folders:
                if interrupts.asked:
                    return PREEMPTED
                end = carry_out(RunFolder(path), interrupts, refuse=partial(_refuse, path))
                if end is End.preempted:
                    return PREEMPTED
                failed = failed or end is not End.done
    except KeyboardInterrupt:
        print("stopped at once", file=sys.stderr)
        return 130
    return SOME_FAILED if failed else ALL_DONE


def _refuse(path: Path, reason: str) -> None:
    print(f"{path}: refused: {reason}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m ablate.worker",
        description="Train frozen run folders, one after another. Done ones are left alone.",
        epilog="example: python -m ablate.worker runs/smoke/*",
    )
    parser.add_argument("folders", metavar="RUN_DIR", nargs="+", type=Path)
    return parser
