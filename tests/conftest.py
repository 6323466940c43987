"""What all tests share: hypothesis without a clock, since machines are shared; the fast lane
from the first file on."""

from hypothesis import HealthCheck, settings

from detmap.adapters import coco_scan

settings.register_profile("detmap", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("detmap")

coco_scan.READ_MEANWHILE = 0  # a test of a lane waits for the compiler, on the first run ever
