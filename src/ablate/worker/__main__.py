"""`python -m ablate.worker RUN_DIR…`."""

import sys

from ablate.worker.main import main

sys.exit(main(sys.argv[1:]))
