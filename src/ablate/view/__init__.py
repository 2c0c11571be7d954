"""What people see: tables from plain rows, progress, and the pages of `ablate ls`, `show` and `sweep`."""

from ablate.view.arms import Factor, arm_label, bias_words, factors, with_bias_words
from ablate.view.comparison import comparison_lines
from ablate.view.configs import annotated, differences, keys_table, print_keys
from ablate.view.facts import Arms, RunFacts, final_val, lookup, read_facts
from ablate.view.filters import matches, parse_filters, resolve
from ablate.view.follow import Follower, Last, last_row
from ablate.view.names import run_names
from ablate.view.page import replayed, run_page
from ablate.view.plans import plan_table
from ablate.view.progress import Progress
from ablate.view.runs import records, runs_table, select
from ablate.view.study import fastest_growing, growth_rates, study_table
from ablate.view.table import Table, emit, plain, rich_table, table
from ablate.view.text import as_float, clean, duration, loss, number, plural, rate, sparkline, value

__all__ = [
    "Arms",
    "Factor",
    "Follower",
    "Last",
    "Progress",
    "RunFacts",
    "Table",
    "annotated",
    "arm_label",
    "as_float",
    "bias_words",
    "clean",
    "comparison_lines",
    "differences",
    "duration",
    "emit",
    "factors",
    "fastest_growing",
    "final_val",
    "growth_rates",
    "keys_table",
    "last_row",
    "lookup",
    "loss",
    "matches",
    "number",
    "parse_filters",
    "plain",
    "plan_table",
    "plural",
    "print_keys",
    "rate",
    "read_facts",
    "records",
    "replayed",
    "resolve",
    "rich_table",
    "run_names",
    "run_page",
    "runs_table",
    "select",
    "sparkline",
    "study_table",
    "table",
    "value",
    "with_bias_words",
]
