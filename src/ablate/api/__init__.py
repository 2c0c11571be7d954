"""The Python interface: a recorded study as tidy tables. `ablate.load_study` is the way in."""

from ablate.api.load import load_study
from ablate.api.run import RecordedRun
from ablate.api.study import Study

__all__ = ["RecordedRun", "Study", "load_study"]
