"""What all tests share: how hypothesis draws.

The suite draws the same examples in every run, so that a failure says something about the change
at hand. ``pytest --hypothesis-profile random`` draws anew; ``tools/fuzz.py`` does so at length.
"""

from hypothesis import HealthCheck, settings

NO_CLOCK = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}  # shared machines
settings.register_profile("suite", derandomize=True, **NO_CLOCK)
settings.register_profile("random", derandomize=False, **NO_CLOCK)
settings.load_profile("suite")
