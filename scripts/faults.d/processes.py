"""Processes that a campaign looks into and sends signals to, by pid."""

import os
import pathlib
import time

BEGIN_SECONDS = 60  # a program takes no longer to watch for signals


class Tracked:
    """A process told by its pid and start time: a pid may come again."""

    def __init__(self, pid):
        self.pid = pid
        self.started = self.start_time()

    def stat(self):
        try:
            text = pathlib.Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8")
        except OSError:
            return None
        return text.rpartition(")")[2].split()

    def start_time(self):
        fields = self.stat()
        return fields and fields[19]

    def lives(self):
        fields = self.stat()
        return bool(fields) and fields[19] == self.started and fields[0] not in "ZX"

    def signal(self, number):
        """False when it has ended."""
        if not self.lives():
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True

    def handles(self, number):
        """Whether it has a handler for the signal: a program that has only just
        been started would end at it."""
        try:
            text = pathlib.Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        except OSError:
            return False
        caught = [line.split()[1] for line in text.splitlines()
                  if line.startswith("SigCgt:")]
        return bool(caught) and int(caught[0], 16) >> (number - 1) & 1 == 1

    def tell(self, number):
        """The signal, once it has a handler for it. False when it has ended."""
        limit = time.monotonic() + BEGIN_SECONDS
        while self.lives() and not self.handles(number) and time.monotonic() < limit:
            time.sleep(0.005)
        return self.signal(number)

    def children(self):
        try:
            text = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text(
                encoding="utf-8")
        except OSError:
            return []
        return [int(pid) for pid in text.split()]

    def ports(self):
        """Local ports of its TCP connections."""
        inodes = set()
        try:
            for fd in os.listdir(f"/proc/{self.pid}/fd"):
                target = os.readlink(f"/proc/{self.pid}/fd/{fd}")
                if target.startswith("socket:["):
                    inodes.add(target[8:-1])
        except OSError:
            pass
        ports = set()
        for table in ("tcp", "tcp6"):
            lines = pathlib.Path(f"/proc/net/{table}").read_text(encoding="utf-8")
            for line in lines.splitlines()[1:]:
                fields = line.split()
                if fields[9] in inodes:
                    ports.add(int(fields[1].rpartition(":")[2], 16))
        return ports
