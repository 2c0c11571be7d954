"""Entry point: find the command, run it, turn outcomes into exit codes."""

import os
import sys
from collections.abc import Sequence

from ablate.cli.codes import BAD_REQUEST, INTERRUPTED
from ablate.cli.parser import COMMANDS, parse
from ablate.config.errors import UserError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns 0 when all runs are done (diverged ones included), 1 when some failed,
    2 for a bad request, 130 after Ctrl-C. Anything unexpected is a bug and keeps its traceback.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        command, args = parse(words)
    except SystemExit as end:  # argparse: --help, --version, bad usage
        return end.code if isinstance(end.code, int) else BAD_REQUEST
    try:
        code = COMMANDS[command].run(args)
        sys.stdout.flush()
        return code
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_REQUEST
    except (PermissionError, FileExistsError, NotADirectoryError) as error:
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        return BAD_REQUEST
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # `ablate ls | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
