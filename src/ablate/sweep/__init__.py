"""From a request to finished runs: plan the grid, freeze the folders, launch them in a pool."""

from ablate.sweep.again import BROKEN, Broken, broken_runs, queue_again
from ablate.sweep.compare import Comparison, compare_runs
from ablate.sweep.cost import Cost, Memory, cost
from ablate.sweep.describe import Descriptions, decay_counts, describe_models, model_of
from ablate.sweep.estimate import Duration, estimate_time
from ablate.sweep.faults import log_tail
from ablate.sweep.fit import Need, check_memory, gigabytes, need_words, needs
from ablate.sweep.guarded import check_confounds, request_facts
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
from ablate.sweep.proof import Proof, paired_proof
from ablate.sweep.rerun import CADENCES, Repetition, nearest_checkpoint, prepare_rerun
from ablate.sweep.weights import check_weights

__all__ = [
    "BROKEN",
    "CADENCES",
    "Broken",
    "Cell",
    "Comparison",
    "Cost",
    "Descriptions",
    "Duration",
    "Interrupted",
    "Memory",
    "Need",
    "Plan",
    "Proof",
    "Repetition",
    "Result",
    "Task",
    "Terms",
    "Watch",
    "WorkerError",
    "broken_runs",
    "check_confounds",
    "check_memory",
    "check_weights",
    "compare_runs",
    "cost",
    "decay_counts",
    "describe_models",
    "estimate_time",
    "freeze",
    "gigabytes",
    "launch",
    "log_tail",
    "model_of",
    "nearest_checkpoint",
    "need_words",
    "needs",
    "paired_proof",
    "plan",
    "plan_cells",
    "prepare_data",
    "prepare_rerun",
    "queue_again",
    "request_facts",
    "requested_factors",
    "unrecorded",
]
