"""`ablate wandb workspace`: the study's panels, saved in W&B."""

import argparse
import sys
from pathlib import Path

from ablate.cli.codes import ALL_DONE, SOME_FAILED
from ablate.cli.studies import existing_study
from ablate.config import UserError
from ablate.view import clean


def run(args: argparse.Namespace) -> int:
    """Save the workspace, or write what would be saved (`--json`), which asks nobody."""
    from ablate.mirror import require_key, wandb_home
    from ablate.mirror.service import Trouble, prepare
    from ablate.mirror.sync import jobs
    from ablate.mirror.workspace import AXIS, as_json, build, require_library, save

    root, study = existing_study(Path(args.root), args.study)
    require_library()
    runs = jobs(root, study)
    if not runs:
        raise UserError(f"no run of study {study!r} has ended", hint=f"ablate status {study}")
    facts = runs[-1].facts
    axes = [key for key in facts.config if key.startswith(AXIS)]
    if args.json is None:
        require_key()
    prepare(wandb_home(root, study) / ".mirror")
    workspace = build(study, facts.project, facts.entity or "", axes)
    if args.json is not None:
        Path(args.json).write_text(as_json(workspace), "utf-8")
        print(f"written: {args.json}")
        return ALL_DONE
    try:
        print(f"saved: {save(workspace, root, study)}")
    except Trouble as error:
        print(f"not saved: {clean(str(error))}", file=sys.stderr)
        return SOME_FAILED
    return ALL_DONE
