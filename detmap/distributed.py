"""Distributed evaluation under its public name: `detmap.integrations.distributed`."""

import sys
from importlib import import_module

sys.modules[__name__] = import_module("detmap.integrations.distributed")
