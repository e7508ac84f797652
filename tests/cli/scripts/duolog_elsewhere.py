"""``duolog`` as on another machine: with a clock that is wrong, and leases that run out sooner.

python duolog_elsewhere.py SECONDS_OF_SKEW SECONDS_OF_LEASE ARGUMENTS...
"""

from __future__ import annotations

import sys
import time

from duolog.cli import main
from duolog.engine.log.leases import LeaseTerms
from duolog.engine.session import simulation

skew, lasts = map(float, sys.argv[1:3])
wall, wall_ns = time.time, time.time_ns
time.time = lambda: wall() + skew
time.time_ns = lambda: wall_ns() + int(skew * 1e9)
assert simulation.simulate.__kwdefaults__ is not None
simulation.simulate.__kwdefaults__["terms"] = LeaseTerms(
    lasts=lasts, renewed=lasts / 3, looked_at=min(1.0, lasts / 10)
)
sys.argv = ["duolog", *sys.argv[3:]]
main()
