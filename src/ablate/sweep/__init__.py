"""From a request to finished runs: plan the grid, freeze the folders, launch them in a pool."""

from ablate.sweep.compare import Comparison, compare_runs
from ablate.sweep.faults import log_tail
from ablate.sweep.launch import Interrupted, Result, Task, Terms, Watch, WorkerError, launch
from ablate.sweep.plan import (
    Cell,
    Plan,
    freeze,
    plan,
    plan_cells,
    prepare_data,
    requested_factors,
    unrecorded,
)
from ablate.sweep.rerun import CADENCES, Repetition, nearest_checkpoint, prepare_rerun

__all__ = [
    "CADENCES",
    "Cell",
    "Comparison",
    "Interrupted",
    "Plan",
    "Repetition",
    "Result",
    "Task",
    "Terms",
    "Watch",
    "WorkerError",
    "compare_runs",
    "freeze",
    "launch",
    "log_tail",
    "nearest_checkpoint",
    "plan",
    "plan_cells",
    "prepare_data",
    "prepare_rerun",
    "requested_factors",
    "unrecorded",
]
