"""What all tests share: hypothesis without a clock, since the machines that run it are shared."""

from hypothesis import HealthCheck, settings

settings.register_profile("detmap", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("detmap")
