"""`ablate config`: the resolved configuration with its run id, or the list of keys."""

import argparse

from ablate.cli.codes import ALL_DONE
from ablate.config import compose, dump, flatten, parse, run_id, slug
from ablate.data import fingerprint
from ablate.view import annotated, print_keys


def run(args: argparse.Namespace) -> int:
    """Print YAML, or with --keys a table."""
    if args.keys is not None:
        print_keys(args.keys)
        return ALL_DONE
    config = compose(args.overrides)
    digest = fingerprint(config.data)
    print(f"# run id: {run_id(config, digest)}")
    print(f"# slug: {slug(config)}")
    print(f"# data fingerprint: {digest}")
    print(annotated(dump(config), flatten(config), flatten(parse({}))), end="")
    return ALL_DONE
