"""Exit codes."""

ALL_DONE = 0
SOME_FAILED = 1
BAD_REQUEST = 2
INTERRUPTED = 130  # Ctrl-C, as shells report it
TERMINATED = 143  # SIGTERM
