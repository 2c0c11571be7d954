"""status.json as something else than a file: the run counts as one without it, and listing goes on."""

import pytest

from ablate.record import Claim, RunFolder, State, read_status
from ablate.view import read_facts


@pytest.fixture
def obstructed(folder: RunFolder) -> RunFolder:
    """A run whose status.json is a folder."""
    folder.status.unlink()
    folder.status.mkdir()
    return folder


def test_a_folder_in_place_of_the_status_is_no_status(obstructed: RunFolder) -> None:
    assert read_status(obstructed).state is State.queued
    assert read_facts(obstructed).state == "queued"


def test_nobody_claims_a_run_whose_status_cannot_be_written(obstructed: RunFolder) -> None:
    with pytest.raises(OSError, match=r"status\.json"):
        Claim.take(obstructed)
    assert not obstructed.claim(1).exists()
    assert read_status(obstructed).state is State.queued
