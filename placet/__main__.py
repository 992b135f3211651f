"""`python -m placet` is the command `placet`."""

import sys

from placet.cli import main

sys.exit(main())
