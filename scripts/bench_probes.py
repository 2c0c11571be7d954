"""CPU seconds of one training step with the default probes against all probes off."""

import argparse
import json

from benching import SHAPE, compare, configuration, take_turns

REACH, STRETCH = 1.06, 1.03
OFF = {"probe": {"outputs": False, "gradients": False, "every": 0}}


def main() -> None:
    """Print one JSON line with the ratio on / off."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", choices=["on", "off"], help=argparse.SUPPRESS)
    parser.add_argument("--pairs", type=int, default=4)
    arguments = parser.parse_args()
    if arguments.child is not None:
        take_turns(configuration({} if arguments.child == "on" else OFF))
    else:
        found = compare(__file__, "on", "off", arguments.pairs)
        line = {"measure": "bench_probes", **found, "reach": REACH, "stretch": STRETCH, "shape": SHAPE}
        print(json.dumps(line))


if __name__ == "__main__":
    main()
