"""The mirror: run folders, read only, become W&B runs. One process; training never imports wandb.

Pure parts: `rows_of`, `run_facts`, `run_summary`, `study_facts`. What calls wandb: `ablate.mirror.service`.
"""

from ablate.mirror.facts import Facts, run_facts, wandb_id
from ablate.mirror.ledger import Condition, Ledger, Sent, read_ledger, wandb_home, write_ledger
from ablate.mirror.mode import Resolved, base_url, has_key, require_key, resolve_mode
from ablate.mirror.rows import digest, rows_of
from ablate.mirror.summary import run_summary

__all__ = [
    "Condition",
    "Facts",
    "Ledger",
    "Resolved",
    "Sent",
    "base_url",
    "digest",
    "has_key",
    "read_ledger",
    "require_key",
    "resolve_mode",
    "rows_of",
    "run_facts",
    "run_summary",
    "wandb_home",
    "wandb_id",
    "write_ledger",
]
