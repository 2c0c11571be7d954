"""What people see: tables from plain rows, progress, and the pages of `ablate ls`, `show` and `sweep`."""

from ablate.view.accounting import (
    COLUMN_NOTES,
    NOTES,
    Account,
    accounts_table,
    architectures_table,
    batch_words,
    facts_of,
    halves,
    model_words,
    published_notes,
    published_words,
    sites_table,
    token_words,
)
from ablate.view.afresh import differing
from ablate.view.analysis import Analysis
from ablate.view.answer import answer
from ablate.view.arms import Factor, arm_label, bias_words, factors, readable, with_bias_words
from ablate.view.comparison import comparison_lines
from ablate.view.configs import annotated, differences, keys_table, print_keys
from ablate.view.facts import Arms, RunFacts, final_val, lookup, read_facts
from ablate.view.figures import export_figures, plates
from ablate.view.filters import matches, parse_filters, resolve
from ablate.view.follow import Follower, Last, last_row
from ablate.view.index import read_all_facts
from ablate.view.mirrored import mirror_notes
from ablate.view.names import run_names
from ablate.view.page import replayed, run_page
from ablate.view.plans import (
    PlannedArm,
    arms_table,
    cost_words,
    factor_words,
    plan_table,
    planned_arms,
    shape_words,
    time_words,
)
from ablate.view.progress import Progress
from ablate.view.report import (
    PAGE,
    markdown,
    report_page,
    study_results,
    study_runs,
    write_markdown,
    write_report,
    write_tables,
)
from ablate.view.results import Results, fastest_growing, growth_rates
from ablate.view.runs import records, runs_table, select
from ablate.view.status import StudyStatus, read_study_status, status_lines, status_tables
from ablate.view.study import answer_command, reading_notes, results_table, sensitivity_table, study_table
from ablate.view.table import Table, emit, plain, rich_table, table
from ablate.view.text import as_float, clean, duration, loss, number, plural, rate, sparkline, value

__all__ = [
    "COLUMN_NOTES",
    "NOTES",
    "PAGE",
    "Account",
    "Analysis",
    "Arms",
    "Factor",
    "Follower",
    "Last",
    "PlannedArm",
    "Progress",
    "Results",
    "RunFacts",
    "StudyStatus",
    "Table",
    "accounts_table",
    "annotated",
    "answer",
    "answer_command",
    "architectures_table",
    "arm_label",
    "arms_table",
    "as_float",
    "batch_words",
    "bias_words",
    "clean",
    "comparison_lines",
    "cost_words",
    "differences",
    "differing",
    "duration",
    "emit",
    "export_figures",
    "factor_words",
    "factors",
    "facts_of",
    "fastest_growing",
    "final_val",
    "growth_rates",
    "halves",
    "keys_table",
    "last_row",
    "lookup",
    "loss",
    "markdown",
    "matches",
    "mirror_notes",
    "model_words",
    "number",
    "parse_filters",
    "plain",
    "plan_table",
    "planned_arms",
    "plates",
    "plural",
    "print_keys",
    "published_notes",
    "published_words",
    "rate",
    "read_all_facts",
    "read_facts",
    "read_study_status",
    "readable",
    "reading_notes",
    "records",
    "replayed",
    "report_page",
    "resolve",
    "results_table",
    "rich_table",
    "run_names",
    "run_page",
    "runs_table",
    "select",
    "sensitivity_table",
    "shape_words",
    "sites_table",
    "sparkline",
    "status_lines",
    "status_tables",
    "study_results",
    "study_runs",
    "study_table",
    "table",
    "time_words",
    "token_words",
    "value",
    "with_bias_words",
    "write_markdown",
    "write_report",
    "write_tables",
]
