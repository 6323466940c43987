"""``python -m detmap``."""

import sys

from detmap.cli import main

sys.exit(main())
