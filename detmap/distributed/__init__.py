"""Distributed evaluation under its public name: `detmap.streaming.distributed`."""

import sys

from detmap.streaming import distributed

sys.modules[__name__] = distributed
