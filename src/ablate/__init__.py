"""Ablation harness: which transformer design choices train stably, with evidence."""

__version__ = "0.1.0"
