"""Run the backend by hand: `python -m tests.mirror.backend --port 8080`, from the repository's root."""

import argparse
import threading

from tests.mirror.backend.server import KEY, Backend


def main() -> None:
    parser = argparse.ArgumentParser(description="A loopback W&B backend that keeps everything in memory.")
    parser.add_argument("--port", type=int, default=8080, help="0: any that is free (default: %(default)s)")
    backend = Backend(parser.parse_args().port)
    print(f"export WANDB_BASE_URL={backend.url} WANDB_API_KEY={KEY}")
    print(f"{backend.url} shows what arrives; Ctrl-C ends it", flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        backend.close()


if __name__ == "__main__":
    main()
