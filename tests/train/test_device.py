import subprocess
import sys

_SCRIPT = """
import platform
import torch
from ablate.train import setup_process
from ablate.train.device import keep_memory
setup_process(2)
print(torch.get_num_threads(), float(torch.tensor([1e-40]) * 1.0))
print(keep_memory() == (platform.libc_ver()[0] == "glibc"))
"""


def test_a_process_is_set_up_as_documented() -> None:
    """In a process of its own: the settings are global."""
    done = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "0.0", "True"]
