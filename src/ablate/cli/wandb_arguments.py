"""The arguments of `ablate wandb …`."""

import argparse
import math
from collections.abc import Callable

STUDY = "a study: its name, or its folder"


def mirror(parser: argparse.ArgumentParser) -> None:
    """`ablate wandb mirror`."""
    parser.add_argument("study", metavar="STUDY", help=STUDY)
    parser.add_argument("--watch", action="store_true", help="go on until none of its runs is at work")
    parser.add_argument(
        "--mode",
        choices=("auto", "online", "offline"),
        help="where to (default: WANDB_MODE, else tracker.mode of the study's runs)",
    )
    parser.add_argument(
        "--finish-timeout",
        type=_seconds,
        metavar="SECONDS",
        help="how long to wait for a service that does not answer (default: tracker.finish_timeout)",
    )
    parser.add_argument(
        "--launched",
        action="store_true",
        help="what launchers say: lowest priority, and go on until standard input is closed",
    )
    _root(parser)


def sync(parser: argparse.ArgumentParser) -> None:
    """`ablate wandb sync`."""
    parser.add_argument(
        "study", nargs="?", metavar="STUDY", help=f"{STUDY} (default: all that were mirrored)"
    )
    parser.add_argument(
        "--timeout",
        type=_some_seconds,
        default=3600.0,
        metavar="SECONDS",
        help="stop after so long; again: it goes on where it stopped (default: %(default)g, per study)",
    )
    _root(parser)


def workspace(parser: argparse.ArgumentParser) -> None:
    """`ablate wandb workspace`."""
    parser.add_argument("study", metavar="STUDY", help=STUDY)
    parser.add_argument("--json", metavar="FILE", help="write what would be saved; no key, no network")
    _root(parser)


def _seconds(text: str) -> float:
    """0 too, as `tracker.finish_timeout`."""
    return _number(text, "a number ≥ 0, finite", lambda x: x >= 0)


def _some_seconds(text: str) -> float:
    return _number(text, "a number > 0, finite", lambda x: x > 0)


def _number(text: str, allowed: str, fits: Callable[[float], bool]) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and fits(found)):
        raise argparse.ArgumentTypeError(f"{text!r}\n  allowed: {allowed}")
    return found


def _root(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", default="runs", help="folder of all studies (default: %(default)s)")
