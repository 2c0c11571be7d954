import os
import signal

import pytest

from ablate.train import Interrupts


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_a_signal_is_noted_and_the_old_handlers_come_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with Interrupts() as interrupts:
        assert interrupts.asked is None
        os.kill(os.getpid(), number)
        assert interrupts.asked is number
    assert signal.getsignal(number) is before


def test_a_second_interrupt_ends_at_once() -> None:
    with Interrupts():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
