"""Wall clocks of programs, moved while they run (scripts/lib/clock.c)."""

import os
import subprocess
import time

from databases import ROOT, fail


def build(folder):
    """The library that a program is started with, made in that folder."""
    library = folder / "clock.so"
    command = [os.environ.get("CC") or "cc", "-std=c11", "-O2", "-shared", "-fPIC", "-o",
               library, ROOT / "scripts/lib/clock.c"]
    if subprocess.run(command, check=False).returncode != 0:
        fail("the C compiler cannot make scripts/lib/clock.c; CC names another one")
    return library


class Clock:
    """One wall clock, the machine's until it is stepped. `environment` starts a
    program that has it."""

    def __init__(self, library, path):
        self.path = path
        self.shift = 0 # microseconds
        self.write()
        self.environment = {**os.environ, "LD_PRELOAD": str(library),
                            "MOONTIDE_CLOCK": str(path)}

    def write(self):
        file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        os.pwrite(file, self.shift.to_bytes(8, "little", signed=True), 0)
        os.close(file)

    def step(self, us):
        self.shift += us
        self.write()

    def now(self):
        """Microseconds since 1970."""
        return time.time_ns() // 1000 + self.shift
