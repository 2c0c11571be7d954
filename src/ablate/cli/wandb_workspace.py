"""`ablate wandb workspace`: the study's panels, saved in W&B."""

import argparse
import sys
from pathlib import Path

from ablate.cli.codes import ALL_DONE, SOME_FAILED
from ablate.config import UserError
from ablate.record import check_study
from ablate.view import clean


def run(args: argparse.Namespace) -> int:
    """Save the workspace, or write what would be saved (`--json`), which asks nobody."""
    from ablate.mirror import require_key, wandb_home
    from ablate.mirror.service import Trouble, prepare
    from ablate.mirror.sync import jobs
    from ablate.mirror.workspace import AXIS, as_json, build, require_library, save

    root = Path(args.root)
    check_study(root, args.study)
    require_library()
    runs = jobs(root, args.study)
    if not runs:
        raise UserError(f"no run of study {args.study!r} has ended", hint=f"ablate status {args.study}")
    facts = runs[-1].facts
    axes = [key for key in facts.config if key.startswith(AXIS)]
    if args.json is None:
        require_key()
    prepare(wandb_home(root, args.study) / ".mirror")
    workspace = build(args.study, facts.project, facts.entity or "", axes)
    if args.json is not None:
        Path(args.json).write_text(as_json(workspace), "utf-8")
        print(f"written: {args.json}")
        return ALL_DONE
    try:
        print(f"saved: {save(workspace, root, args.study)}")
    except Trouble as error:
        print(f"not saved: {clean(str(error))}", file=sys.stderr)
        return SOME_FAILED
    return ALL_DONE
