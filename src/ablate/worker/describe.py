"""What models really have, told without building them: `python -m ablate.worker.describe`.

Reads a JSON list of {"model": …, "vocab_size": …} on stdin and writes the list of their descriptions on
stdout. One process answers for many models; it imports torch, allocates nothing (meta device) and draws
nothing.
"""

import sys

import orjson


def main() -> int:
    """Answer on stdout. An error is a traceback on stderr: the questions come from checked configurations."""
    questions = orjson.loads(sys.stdin.buffer.read())
    from ablate.config import parse
    from ablate.model import describe

    answers = [
        describe(parse({"model": question["model"]}).model, question["vocab_size"]).to_dict()
        for question in questions
    ]
    sys.stdout.buffer.write(orjson.dumps(answers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
