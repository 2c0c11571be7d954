"""Training of one run: optimiser, schedule, loop, evaluation, checkpoints, device and precision."""

from ablate.train.checkpoint import ForeignCheckpoint, tidy
from ablate.train.clip import clip_divisor
from ablate.train.device import device_name, open_device, setup_process
from ablate.train.evaluate import evaluate
from ablate.train.loop import Ending, Lane, Outcome, Ready, train
from ablate.train.loss import example_loss, token_loss
from ablate.train.optimizer import AdamW, DecayGroups, decay_groups
from ablate.train.rows import RowBuffer
from ablate.train.schedule import factor
from ablate.train.signals import Interrupts
from ablate.train.step import HOST_COLUMNS, Measured, Stepper
from ablate.train.stop import StopRule
from ablate.train.world import World

__all__ = [
    "HOST_COLUMNS",
    "AdamW",
    "DecayGroups",
    "Ending",
    "ForeignCheckpoint",
    "Interrupts",
    "Lane",
    "Measured",
    "Outcome",
    "Ready",
    "RowBuffer",
    "Stepper",
    "StopRule",
    "World",
    "clip_divisor",
    "decay_groups",
    "device_name",
    "evaluate",
    "example_loss",
    "factor",
    "open_device",
    "setup_process",
    "tidy",
    "token_loss",
    "train",
]
