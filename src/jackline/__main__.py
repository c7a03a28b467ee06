"""`python -m jackline`: the command line."""

import sys

from jackline.cli.main import main

sys.exit(main())
