"""`python -m jackline.fake`: starts the fake model as a program. This name is stable."""

from __future__ import annotations

import sys

from jackline.fake_model.program import main

if __name__ == "__main__":
    sys.exit(main())
