"""Settings for every test."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# The machine that runs the tests may be slow or shared, so no example is failed for its time.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
