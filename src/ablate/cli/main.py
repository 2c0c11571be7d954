"""Entry point: find the command, run it, turn outcomes into exit codes."""

import contextlib
import os
import sys
from collections.abc import Sequence

from ablate.cli.codes import BAD_REQUEST, INTERRUPTED, SOME_FAILED
from ablate.cli.streams import dropping_streams, usual_streams

PATH_CHARACTERS = 200  # of a file's name in an error


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns 0 when all runs are done (diverged ones included), 1 when some failed or the
    output could not be written, 2 for a bad request, 130 after Ctrl-C. Anything unexpected is a bug and
    keeps its traceback.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    with usual_streams():
        try:
            return _run(words)
        except KeyboardInterrupt:
            _say("interrupted")
            return INTERRUPTED
        except BrokenPipeError:  # `ablate ls | head`
            _silence()
            return 0
        except OSError as error:
            return _failed(error)


def _run(words: Sequence[str]) -> int:
    # Only here, where Ctrl-C is expected: imports take a moment.
    from ablate.cli.commands import COMMANDS
    from ablate.cli.parser import parse
    from ablate.config.errors import UserError

    try:
        name, args = parse(words)
    except SystemExit as end:  # argparse: --help, --version, bad usage
        return end.code if isinstance(end.code, int) else BAD_REQUEST
    command = COMMANDS[name]
    try:
        with dropping_streams() if command.trains else contextlib.nullcontext():
            code = command.run(args)
            sys.stdout.flush()
        return code
    except UserError as error:
        _say(f"error: {error}")
        return BAD_REQUEST


def _failed(error: OSError) -> int:
    """Say what the system refused: of a file that the request names, or of the output."""
    if error.errno is None:
        raise error
    if error.filename is None:
        _silence()
        _say(f"error: {error.strerror}")
        return SOME_FAILED
    from ablate.view import clean

    _say(f"error: {clean(os.fspath(error.filename), PATH_CHARACTERS)}: {error.strerror}")
    return BAD_REQUEST


def _say(text: str) -> None:
    with contextlib.suppress(BrokenPipeError):
        print(text, file=sys.stderr, flush=True)


def _silence() -> None:
    """Send standard output nowhere: the interpreter would try to write what is left, and say so."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
