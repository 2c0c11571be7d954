"""The run folder: the only interface between planning, training and everything that reads results."""

from ablate.record.claim import Claim, Heartbeat, read_status
from ablate.record.collector import collector_paused
from ablate.record.compare import Difference, compare_series
from ablate.record.create import create_rerun, create_run, write_request
from ablate.record.disk import finite, read_json, replace_file, write_json
from ablate.record.errors import Claimed, DiskFull, Finished, Superseded
from ablate.record.find import check_study, find_run, find_runs, find_studies, runs_by_study
from ablate.record.folder import RunFolder
from ablate.record.labels import depth_of, site_of
from ablate.record.process import Owner
from ablate.record.read import Series, read_series
from ablate.record.run import Run, summarise
from ablate.record.series import REDO, SeriesWriter
from ablate.record.state import State, Status, status_json
from ablate.record.surroundings import code_sha, compare_environments, environment

__all__ = [
    "REDO",
    "Claim",
    "Claimed",
    "Difference",
    "DiskFull",
    "Finished",
    "Heartbeat",
    "Owner",
    "Run",
    "RunFolder",
    "Series",
    "SeriesWriter",
    "State",
    "Status",
    "Superseded",
    "check_study",
    "code_sha",
    "collector_paused",
    "compare_environments",
    "compare_series",
    "create_rerun",
    "create_run",
    "depth_of",
    "environment",
    "find_run",
    "find_runs",
    "find_studies",
    "finite",
    "read_json",
    "read_series",
    "read_status",
    "replace_file",
    "runs_by_study",
    "site_of",
    "status_json",
    "summarise",
    "write_json",
    "write_request",
]
