"""The mirror: run folders, read only, become W&B runs. One process; training never imports wandb.

Pure parts: `rows_of`, `run_facts`, `run_summary`, `study.study_page`. What calls wandb: `service`, and
`study` for media. `mirror.Mirror` looks at folders, `command.mirror_study` is the whole process.
"""

from ablate.mirror.facts import Facts, run_facts, wandb_id
from ablate.mirror.launch import Launched, is_agents, start_mirror
from ablate.mirror.ledger import Condition, Ledger, Sent, read_ledger, wandb_home, write_ledger
from ablate.mirror.mode import Resolved, api_key, base_url, has_key, require_key, resolve_mode
from ablate.mirror.rows import digest, rows_of
from ablate.mirror.summary import run_summary

__all__ = [
    "Condition",
    "Facts",
    "Launched",
    "Ledger",
    "Resolved",
    "Sent",
    "api_key",
    "base_url",
    "digest",
    "has_key",
    "is_agents",
    "read_ledger",
    "require_key",
    "resolve_mode",
    "rows_of",
    "run_facts",
    "run_summary",
    "start_mirror",
    "wandb_home",
    "wandb_id",
    "write_ledger",
]
