"""The tour of the README, followed to the letter on one database.

    tour.py MOONTIDE URL CLIENT...

Commands are those of the section "Five minutes"; what they print must be what
stands there, but for times, rates and ids. CLIENT are the words of the
database's own client, which takes the place of `sqlite3 moontide.db`. Ends
with `N passed, N failed`.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HANDLER = "handlers/loans.lua"
WAIT = 20  # seconds

# What a reader is told to change in the handler, by words of that sentence.
EDITS = [
    ("let a book be returned only if it was lent", None),  # the code follows
    ("Replace `error(...)` by", ('error("returned, but never lent")',
                                 "return moontide.delete")),
    ("Add `branch = t.text", ("since = t.date() }",
                              "since = t.date(), branch = t.text { optional = true } }")),
    ("`loan.branch =", ("loan.reader = event.payload.reader\n",
                        "loan.reader = event.payload.reader\n"
                        "      loan.branch = event.payload.branch\n")),
]

VARIABLE = [
    (r"\d+\.\d s \([\d,]+/s\)", "TIME"),
    (r"\d\d:\d\d:\d\d(?= (error|warn|info))", "CLOCK"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", "MOMENT"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID"),
    (r"declared as [^,]+, missing", "declared as TYPE, missing"),
    (r"next one in \d+\.\d+ s", "next one in TIME"),
    (r"the oldest \d+ s old", "the oldest AGE old"),
    (r"next attempt is (at MOMENT, in \d+ s|due: a host does it)",
     "next attempt is at MOMENT"),
    (r"FAILED \(\d+(\.\d)? m?s\)", "FAILED (AGE)"),
]


def plain(text):
    for pattern, word in VARIABLE:
        text = re.sub(pattern, word, text)
    return [line.rstrip() for line in text.strip().splitlines()]


def same(wanted, found):
    """`...` stands for lines that are left out."""
    wanted, found = plain(wanted), plain(found)
    if "  ..." in wanted:
        head = wanted[:wanted.index("  ...")]
        return found[:len(head)] == head
    return wanted == found


class Tour:
    def __init__(self, folder, moontide, url, client):
        self.folder, self.client = folder, client
        self.passed = self.failed = 0
        self.env = {name: value for name, value in os.environ.items()
                    if not name.startswith(("MOONTIDE", "LUA_"))}
        self.env["PATH"] = f"{pathlib.Path(moontide).parent}:{self.env['PATH']}"
        self.env["MOONTIDE_LOG_FORMAT"] = "text"  # as on a terminal
        self.env.pop("DATABASE_URL", None)
        if url:
            self.env["DATABASE_URL"] = url

    def judge(self, good, title, detail=""):
        self.passed += good
        self.failed += not good
        print(f"{'pass' if good else 'FAIL'} {title}{'' if good else detail}")

    def shell(self, script):
        return subprocess.run(
            ["bash", "-c", script], cwd=self.folder, env=self.env, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, check=False)

    def script(self, text):
        """A block of commands without output."""
        if self.client:
            text = text.replace("sqlite3 moontide.db", shlex.join(self.client))
        if text.startswith("mkdir -p library"):
            text = text.replace("library/handlers && cd library", "handlers")
        done = self.shell("set -e\n" + text)
        self.judge(done.returncode == 0, text.splitlines()[0], "\n" + done.stdout)

    def session(self, text):
        """Commands behind `$ `, each with what it prints."""
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, wanted = part.partition("\n")
            limit = time.monotonic() + WAIT
            while True:
                done = self.shell(command)
                good = same(wanted, done.stdout)
                # 75: try again later, which a reader has done by then
                if good or done.returncode != 75 or time.monotonic() > limit:
                    break
            self.judge(good, command,
                       f"\nwanted:\n{wanted}\nfound:\n{done.stdout}")

    def edit(self, old, new):
        path = self.folder / HANDLER
        text = path.read_text()
        self.judge(old in text, f"change of {HANDLER}", f": no {old}")
        path.write_text(text.replace(old, new, 1))

    def replace_handler(self, code):
        """The code of one event type, which stands last in the file."""
        path = self.folder / HANDLER
        first = code.splitlines()[0]
        text = path.read_text()
        start = text.index(first.split("(")[0])
        end = text.index("    end,\n", start) + len("    end,\n")
        path.write_text(text[:start] + code + text[end:])


def main():
    moontide, url, *client = sys.argv[1:]
    readme = (ROOT / "README.md").read_text()
    section = readme.split("\n## Five minutes\n")[1].split("\n## ")[0]
    with tempfile.TemporaryDirectory(prefix="moontide-tour-") as folder:
        tour = Tour(pathlib.Path(folder), moontide, url, client)
        told = set()
        for part in re.split(r"^(```\w*\n.*?^```\n)", section,
                             flags=re.MULTILINE | re.DOTALL):
            block = re.match(r"```(\w*)\n(.*)^```\n", part,
                             re.MULTILINE | re.DOTALL)
            if block is None:
                prose = " ".join(part.split())
                for words, change in EDITS:
                    if words in prose:
                        told.add(words)
                        if change:
                            tour.edit(*change)
            elif block[1] == "sh":
                tour.script(block[2])
            elif block[1] == "lua":
                tour.replace_handler(block[2])
            elif block[2].startswith("$ "):
                tour.session(block[2])
            else:  # the end of what `moontide check` prints
                found = tour.shell("moontide check").stdout
                tour.judge("\n".join(plain(block[2])) in "\n".join(plain(found)),
                           "moontide check", f"\n{found}")
        tour.judge(len(told) == len(EDITS), "every change was told")
    print(f"{tour.passed} passed, {tour.failed} failed")
    sys.exit(1 if tour.failed else 0)


if __name__ == "__main__":
    main()
