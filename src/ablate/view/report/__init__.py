"""The report of a study: one HTML file, and its tables as Markdown, CSV or Parquet."""

from ablate.view.report.files import markdown, write_markdown, write_tables
from ablate.view.report.load import study_results, study_runs
from ablate.view.report.write import PAGE, report_page, write_report

__all__ = [
    "PAGE",
    "markdown",
    "report_page",
    "study_results",
    "study_runs",
    "write_markdown",
    "write_report",
    "write_tables",
]
