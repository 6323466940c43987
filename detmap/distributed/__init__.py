"""Distributed evaluation under its public name: `detmap.core.streaming.distributed`."""

import sys

from detmap.core.streaming import distributed

sys.modules[__name__] = distributed
