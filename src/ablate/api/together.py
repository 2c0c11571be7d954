"""What a run is only beside the others of its study: impaired, or the twin of one. From facts alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ablate.stats import Study
from ablate.view import RunFacts, number
from ablate.view.results import impaired_runs, study_of


@dataclass(frozen=True)
class Together:
    """The runs as the statistics take them; `arm`: of each run that may be compared; `impaired`: ids."""

    study: Study
    arm: Mapping[str, str]
    impaired: frozenset[str]

    @classmethod
    def of(cls, runs: Sequence[RunFacts]) -> "Together":
        """Compare the runs that may be compared."""
        study = study_of(runs)
        arm = {o.run_id: o.arm for o in study.outcomes}
        return cls(study, arm, impaired_runs([r for r in runs if r.run_id in arm], study))

    def why_no_twin(self, run: RunFacts) -> str:
        """A sentence for a run that has no stable twin."""
        arm = self.arm.get(run.run_id)
        if arm is None:
            return "it has no readable configuration, or must not be compared with the others (ablate report)"
        best = self.study.best_rates[arm]
        if best is None:
            return f"no learning rate trains the arm {arm}"
        if run.lr == best:
            return f"it is at its arm's best learning rate ({number(best, 6)}) itself"
        return f"at its arm's best learning rate ({number(best, 6)}) no run of seed {run.seed} is stable"
