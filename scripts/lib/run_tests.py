"""The steps of scripts/test: runs each quietly, counts what its runner says,
and sums up. A runner that ran nothing, crashed, or gave another number of
results than it announced has failed, whatever it printed.

After the builds several steps run at a time, the long ones first: most wait
for programs, servers and times more than they compute."""

import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LOGS = ROOT / "build/log"
STEP_LIMIT = 1800  # seconds, beside others
SPECS_LIMIT = 2400  # for all specs of one kind
FUZZ_SECONDS = 10  # per target
BANK_EVENTS = 20000  # per server
SHOWN = 25  # lines of a failed step's log
SERVER_DIALECTS = ("postgres", "mysql")

ENVIRONMENT = {name: value for name, value in os.environ.items()
               if name not in ("DATABASE_URL", "MOONTIDE", "LUA_PATH",
                               "LUA_CPATH", "POSTGRES_URL", "MARIADB_URL",
                               "MOONTIDE_DIALECTS")}
# Debian's own psql is a script that looks for this one.
ENVIRONMENT["PATH"] = ":".join(
    [*sorted(map(str, pathlib.Path("/usr/lib/postgresql").glob("*/bin")),
             reverse=True), ENVIRONMENT["PATH"]])
ENVIRONMENT["ASAN_OPTIONS"] = "detect_leaks=1:abort_on_error=0"
ENVIRONMENT["UBSAN_OPTIONS"] = "print_stacktrace=1"


class Servers:
    """The private database servers (scripts/servers): started when the first
    step needs them and stopped at the end, unless they ran before."""

    def __init__(self):
        self.urls = {}
        self.started = False
        self.lock = threading.Lock() # several steps may need them first

    def ask(self, word, **more):
        return subprocess.run([ROOT / "scripts/servers", word], check=False,
                              stdin=subprocess.DEVNULL, **more)

    def read(self):
        asked = self.ask("env", stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True)
        words = shlex.split(asked.stdout) if asked.returncode == 0 else []
        self.urls = dict(word.split("=", 1) for word in words if "=" in word)

    def need(self):
        """Their URLs, as the environment of a step; none when they cannot be
        started: the tests then say what is missing, and fail."""
        with self.lock:
            if not self.urls:
                self.read()
            if not self.urls:
                self.started = True # also to clean up after half a start
                self.ask("start")
                self.read()
            return self.urls

    def stop(self):
        if self.started:
            self.ask("stop")
            self.started = False


SERVERS = Servers()


class Outcome:
    def __init__(self, passed=0, failed=0, lines=()):
        self.passed, self.failed = passed, failed
        self.lines = list(lines)  # what failed, for the reader

    def __add__(self, other):
        return Outcome(self.passed + other.passed, self.failed + other.failed,
                       self.lines + other.lines)


RUNNING = set() # of all steps, to be ended with this program


class Step:
    """Runs commands with their output in one log file."""

    def __init__(self, name):
        self.name = name
        self.log = LOGS / f"test-{name}.log"
        self.log.write_bytes(b"")

    def run(self, command, cwd=ROOT, env=None, stdin=os.devnull,
            limit=STEP_LIMIT):
        """(exit code, output); a command past its time has exit code -1."""
        with open(self.log, "ab") as log, open(stdin, "rb") as given:
            log.write(f"$ {' '.join(map(str, command))}\n".encode())
            log.flush()
            start = log.tell()
            try:
                process = subprocess.Popen(
                    [str(word) for word in command], cwd=cwd,
                    stdin=given, stdout=log, stderr=subprocess.STDOUT,
                    env={**ENVIRONMENT, **(env or {})})
                RUNNING.add(process)
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                log.write(f"ended after {limit} s\n".encode())
                code = -1
            except OSError as error:
                log.write(f"{error}\n".encode())
                code = -1
            else:
                RUNNING.discard(process)
        with open(self.log, "rb") as log:
            log.seek(start)
            return code, log.read().decode("utf-8", "replace")

    def succeeds(self, *command, **more):
        """One test: the command ends with 0."""
        code, output = self.run(list(command), **more)
        if code == 0:
            return Outcome(1, 0)
        return Outcome(0, 1, output.splitlines()[-SHOWN:]
                       + [f"exit code {code}"])


def judge(code, passed, failed, announced, lines):
    """Counts that fit the exit code and the announced number, or a failure."""
    missing = (announced or 0) - passed - failed
    if announced is None:
        failed += 1
        lines.append("the runner did not come to its end")
    elif announced == 0 or passed + failed == 0:
        failed += 1
        lines.append("no test ran")
    elif missing != 0:
        failed += abs(missing)
        lines.append(f"{announced} tests announced, {announced - missing} seen")
    if code != 0 and failed == 0:
        failed += 1
        lines.append(f"exit code {code} with no failed test")
    if code == 0 and failed > 0:
        lines.append("exit code 0 in spite of it")
    return Outcome(passed, failed, lines)


def count_tap(code, output):
    passed = failed = 0
    announced, lines, in_failure = None, [], False
    for line in output.splitlines():
        plan = re.fullmatch(r"1\.\.(\d+)", line)
        if plan:
            announced = int(plan.group(1))
        elif line.startswith("ok ") and "# SKIP" not in line:
            passed += 1
            in_failure = False
        elif line.startswith(("ok ", "not ok ")):
            failed += 1
            in_failure = True
            lines.append(line)
        elif in_failure and line.startswith("#"):
            lines.append(line)
    if announced is None:
        lines += output.splitlines()[-SHOWN:]
    return judge(code, passed, failed, announced, lines)


def count_ctest(code, output):
    summary = re.search(r"\d+% tests passed, (\d+) tests? failed out of (\d+)",
                        output)
    if not summary:
        return judge(code, 0, 0, None, output.splitlines()[-SHOWN:])
    failed, total = int(summary.group(1)), int(summary.group(2))
    lines = [line for line in output.splitlines()
             if re.search(r"\*\*\*|\[  FAILED  \]|\[  ERROR   \]|\[   LINE   \]"
                          r"|^ERROR: ", line)]
    return judge(code, total - failed, failed, total, lines)


def count_summary(code, output):
    """Scripts of our own: `pass`/`FAIL` lines and a last line of counts."""
    passed = len(re.findall(r"^pass ", output, re.MULTILINE))
    failed = len(re.findall(r"^FAIL ", output, re.MULTILINE))
    summary = re.search(r"^(\d+) passed, (\d+) failed\s*\Z", output, re.MULTILINE)
    announced = int(summary.group(1)) + int(summary.group(2)) if summary else None
    lines = [line for line in output.splitlines()
             if not line.startswith("pass ")] if failed or code else []
    return judge(code, passed, failed, announced, lines)


# --- steps ----------------------------------------------------------------------


def build(preset):
    def step(log):
        if not (ROOT / f"build/{preset}/build.ninja").exists():
            configured = log.succeeds("cmake", "--preset", preset)
            if configured.failed:
                return configured
        return log.succeeds("cmake", "--build", "--preset", preset)
    return step


def c_tests(preset):
    return lambda log: count_ctest(*log.run(
        ["ctest", "--preset", preset, "--timeout", "900", "-j", "2"],
        env=SERVERS.need()))


def own_script(*command, **env):
    return lambda log: count_summary(*log.run(command, env=env))


def run_specs(log, preset, folder, files, more):
    # Specs that start the program find this build of it.
    path = f"{ROOT / 'build' / preset}:{ENVIRONMENT['PATH']}"
    moontide = ROOT / "build" / preset / "moontide"
    return count_tap(*log.run([moontide, "test", "-o", "TAP", *files],
                              cwd=ROOT / folder,
                              env={"PATH": path, "MOONTIDE": str(moontide),
                                   **more}, limit=SPECS_LIMIT))


def specs(preset, folder):
    return lambda log: run_specs(log, preset, folder, ["spec"],
                                 {"MOONTIDE_DIALECTS": "sqlite"})


def specs_on(dialect):
    """Every spec that runs on several databases, on one server. One after the
    other: some look at what sessions the server has."""
    def step(log):
        urls = SERVERS.need()
        if not urls:
            return Outcome(0, 1, ["scripts/servers start failed"])
        files = [path for path in sorted((ROOT / "spec").glob("*/*_spec.lua"))
                 if re.search(r"dialect\.(each|servers|only)\(", path.read_text())]
        return run_specs(log, "release", ".", files,
                         {**urls, "MOONTIDE_DIALECTS": dialect})
    return step


def fresh_database(log, dialect, name):
    """(outcome, URL) of a new database on the dialect's server."""
    urls = SERVERS.need()
    if dialect == "postgres":
        server = urls.get("POSTGRES_URL", "")
        made = log.succeeds("psql", server, "-Xqc", f"CREATE DATABASE {name}")
    else:
        server = urls.get("MARIADB_URL", "")
        parts = urllib.parse.urlsplit(server)
        made = log.succeeds(
            "mariadb", "--no-defaults", f"--host={parts.hostname}",
            f"--port={parts.port}", f"--user={parts.username}",
            f"--execute=CREATE DATABASE {name}")
    return made, server.rsplit("/", 1)[0] + "/" + name


def bank_dialects(log):
    """The bank's example on each server: generated events, verified by a
    computation of its own, and then its specs."""
    bank, moontide = ROOT / "examples/bank", ROOT / "build/release/moontide"
    config = ["--config", bank / "moontide.conf.lua"]
    outcome = Outcome()
    if not SERVERS.need():
        return Outcome(0, 1, ["scripts/servers start failed"])
    with tempfile.TemporaryDirectory(prefix="moontide-bank-") as folder:
        events = pathlib.Path(folder) / "events.ndjson"
        with open(events, "wb") as out:
            subprocess.run(["luajit", bank / "generate.lua", str(BANK_EVENTS)],
                           stdout=out, check=True)
        for dialect in SERVER_DIALECTS:
            made, url = fresh_database(log, dialect,
                                       f"bank_{os.getpid()}_{time.time_ns()}")
            outcome += made
            if made.failed:
                continue
            on = ["--database", url]
            for words in (["append", "--quiet", *config, *on, events],
                          ["run", "--until-idle", "--quiet", *config, *on],
                          ["check", *config, *on]):
                outcome += log.succeeds(moontide, *words)
            outcome += log.succeeds("python3", bank / "verify.py", events, *on,
                                    "--moontide", moontide, *config)
            outcome += count_tap(*log.run([moontide, "test", "-o", "TAP", "spec"],
                                          cwd=bank, env={"DATABASE_URL": url}))
    return outcome


def orders_dialects(log):
    """The specs of the orders example on each server."""
    moontide = ROOT / "build/release/moontide"
    outcome = Outcome()
    if not SERVERS.need():
        return Outcome(0, 1, ["scripts/servers start failed"])
    for dialect in SERVER_DIALECTS:
        made, url = fresh_database(log, dialect,
                                   f"orders_{os.getpid()}_{time.time_ns()}")
        outcome += made
        if not made.failed:
            outcome += count_tap(*log.run([moontide, "test", "-o", "TAP", "spec"],
                                          cwd=ROOT / "examples/orders",
                                          env={"DATABASE_URL": url}))
    return outcome


class Pooler:
    """pgbouncer in transaction mode before the PostgreSQL of the tests."""

    def __init__(self, folder):
        server = urllib.parse.urlsplit(SERVERS.need()["POSTGRES_URL"])
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"postgresql://moontide@127.0.0.1:{port}/postgres"
        self.folder, self.process = pathlib.Path(folder), None
        (self.folder / "pgbouncer.ini").write_text(f"""[databases]
* = host=127.0.0.1 port={server.port} user=moontide
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
logfile = {self.folder}/log
pidfile = {self.folder}/pid
""")

    def __enter__(self):
        words = ["/usr/sbin/pgbouncer", "--quiet", self.folder / "pgbouncer.ini"]
        if os.geteuid() == 0:  # which it refuses to run as
            words = ["setpriv", "--reuid", "nobody", "--clear-groups", "--", *words]
            shutil.chown(self.folder, "nobody")
        self.process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        limit = time.monotonic() + 20
        while time.monotonic() < limit and self.process.poll() is None:
            done = subprocess.run(["psql", self.url, "-Xqc", "SELECT 1"], check=False,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if done.returncode == 0:
                break
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def pooler(log):
    """The bank, and specs, behind pgbouncer in transaction mode."""
    bank, moontide = ROOT / "examples/bank", ROOT / "build/release/moontide"
    config = ["--config", bank / "moontide.conf.lua"]
    if not SERVERS.need():
        return Outcome(0, 1, ["scripts/servers start failed"])
    with tempfile.TemporaryDirectory(prefix="moontide-pooler-") as folder, \
            tempfile.NamedTemporaryFile(suffix=".ndjson") as events, \
            Pooler(folder) as pool:
        subprocess.run(["luajit", bank / "generate.lua", str(BANK_EVENTS)],
                       stdout=events, check=True)
        outcome, url = fresh_database(log, "postgres",
                                      f"pooled_{os.getpid()}_{time.time_ns()}")
        on = ["--database", pool.url.rsplit("/", 1)[0] + "/" + url.rsplit("/", 1)[1]]
        for words in (["append", "--quiet", *config, *on, events.name],
                      ["run", "--until-idle", "--quiet", *config, *on]):
            outcome += log.succeeds(moontide, *words,
                                    env={"MOONTIDE_PREPARE": "false"})
        outcome += log.succeeds("python3", bank / "verify.py", events.name, *on,
                                "--moontide", moontide, *config)
        return outcome + count_tap(*log.run(
            [moontide, "test", "-o", "TAP", "spec/consumer/batch_spec.lua",
             "spec/run/wake_spec.lua"],
            env={**SERVERS.urls, "POOLED_URL": pool.url, "MOONTIDE": str(moontide),
                 "MOONTIDE_DIALECTS": "pooled"}))


def other_servers(log, who):
    """Servers of another copy of the tree, run by `who` (None: as we are), with
    TLS: every way to reach them is tried."""
    with tempfile.TemporaryDirectory(prefix="moontide-copy-") as folder:
        copy = pathlib.Path(folder)
        shutil.copytree(ROOT / "scripts", copy / "scripts")
        run_by = []
        if who:
            run_by = ["setpriv", "--reuid", who, "--clear-groups", "--"]
            shutil.chown(copy, who)
        servers = [*run_by, copy / "scripts/servers"]
        outcome = log.succeeds(*servers, "start", "--tls")
        if outcome.failed:
            return outcome
        _, printed = log.run([*servers, "env"])
        urls = dict(re.findall(r"^export (\w+)='(\w+://[^']*)'$", printed,
                               re.MULTILINE))
        paths = dict(re.findall(r"^export (TLS_CA)='(/.*)'$", printed, re.MULTILINE))
        good = (set(urls) == {"POSTGRES_URL", "MARIADB_URL"} and paths
                and not set(urls.values()) & set(SERVERS.need().values()))
        outcome += Outcome(good, not good, [] if good else [printed])
        for dialect, url in zip(("postgres", "mysql"), sorted(urls.values(),
                                                              reverse=True)):
            outcome += log.succeeds(*client_of(dialect, url), stdin=os.devnull)
        if not who:
            outcome += count_summary(*log.run(
                ["python3", ROOT / "scripts/lib/connections.py",
                 ROOT / "build/release/moontide"], env={**urls, **paths}))
        outcome += log.succeeds(*servers, "stop")
        code, _ = log.run([*servers, "env"])
        return outcome + Outcome(code == 1, code != 1,
                                 [] if code == 1 else ["they did not stop"])


def servers(log):
    """Two copies of the servers run at once, as root and as a normal user."""
    if not SERVERS.need():
        return Outcome(0, 1, ["scripts/servers start failed"])
    outcome = other_servers(log, None)
    if os.geteuid() == 0:
        outcome += other_servers(log, "nobody")
    return outcome + log.succeeds("scripts/servers", "env")  # ours still run


def client_of(dialect, url):
    """The words that start the dialect's own client on that database."""
    if dialect == "postgres":
        return ["psql", url, "-Xq", "-v", "ON_ERROR_STOP=1"]
    parts = urllib.parse.urlsplit(url)
    return ["mariadb", "--no-defaults", f"--host={parts.hostname}",
            f"--port={parts.port}", f"--user={parts.username}", parts.path[1:]]


def writers(log):
    """The example's writers in other languages append as it says."""
    folder, moontide = ROOT / "examples/writers", ROOT / "build/release/moontide"
    outcome = Outcome()
    if not SERVERS.need():
        return Outcome(0, 1, ["scripts/servers start failed"])
    for dialect, script in (("postgres", "postgresql.sql"),
                            ("mysql", "mariadb.sql")):
        made, url = fresh_database(log, dialect,
                                   f"shop_{os.getpid()}_{time.time_ns()}")
        outcome += made
        if made.failed:
            continue
        client = client_of(dialect, url)
        order = ["/usr/bin/python3", folder / "place_order.py", url, "X-2",
                 "Grace", "1200"]
        outcome += log.succeeds(moontide, "schema", "upgrade", "--database", url)
        for name in ("orders.sql", script):
            outcome += log.succeeds(*client, stdin=folder / name)
        outcome += log.succeeds(*order)
        code, _ = log.run(order)  # the order is there
        outcome += Outcome(code != 0, code == 0, [] if code else ["placed twice"])
        code, output = log.run([moontide, "events", "--export", "--database", url])
        types = re.findall(r'"type":"([^"]*)"', output)
        good = types == ["order.Placed", "order.Confirmed", "order.Placed"]
        outcome += Outcome(good, not good, [] if good else [output])
    return outcome


def fuzz(log):
    """Every target, for a few seconds, from its corpus."""
    outcome = Outcome()
    artifacts = ROOT / "build/fuzz/artifacts"
    artifacts.mkdir(parents=True, exist_ok=True)
    sources = sorted((ROOT / "spec/fuzz").glob("*_fuzz.c"))
    if not sources:
        return Outcome(0, 1, ["spec/fuzz has no target"])
    for source in sources:
        # New inputs go to a folder of their own; the kept corpus is only read.
        found = ROOT / "build/fuzz/corpus" / source.stem
        found.mkdir(parents=True, exist_ok=True)
        kept = ROOT / "spec/fuzz/corpus" / source.stem.removesuffix("_fuzz")
        outcome += log.succeeds(
            ROOT / "build/fuzz" / source.stem, found,
            *([kept] if kept.is_dir() else []),
            f"-max_total_time={FUZZ_SECONDS}", "-timeout=10", "-rss_limit_mb=2048",
            f"-artifact_prefix={artifacts}/{source.stem}-")
    return outcome


def bench(log):
    """Host and bare loops give the same rows; the figures are not judged."""
    return log.succeeds("scripts/bench", "--rounds", "1", "--events", "20000",
                        "--only", "append", "--only", "keyed", "--only", "sql",
                        env={"QUIET_LIMIT": "0", **SERVERS.need()})


def demo(log):
    """The demo runs, verifies, and shows the same on every database; what is
    built already is not built again."""
    outcome, shown = Outcome(), {}
    for dialect in ("sqlite", "postgres", "mysql"):
        env = {}
        if dialect != "sqlite":
            if not SERVERS.need():
                return Outcome(0, 1, ["scripts/servers start failed"])
            made, env["DATABASE_URL"] = fresh_database(
                log, dialect, f"demo_{os.getpid()}_{time.time_ns()}")
            outcome += made
        code, output = log.run(["scripts/demo", "3000"], env=env)
        shown[dialect] = re.findall(
            r"^The ten largest.*^Verified.*?(?=^The database is)", output,
            re.MULTILINE | re.DOTALL)
        good = (code == 0 and len(shown[dialect]) == 1
                and shown[dialect] == shown["sqlite"])
        outcome += Outcome(good, not good,
                           [] if good else output.splitlines()[-SHOWN:])
    code, output = log.run(["cmake", "--build", "--preset", "release"])
    if code == 0 and "no work to do" in output:
        return outcome + Outcome(1, 0)
    return outcome + Outcome(0, 1, ["a second build still had work to do"])


def tour(log):
    """The README's tour, word for word, on every database."""
    outcome = Outcome()
    if not SERVERS.need():
        return Outcome(0, 1, ["scripts/servers start failed"])
    for dialect in ("sqlite", "postgres", "mysql"):
        words = [""]
        if dialect != "sqlite":
            made, url = fresh_database(log, dialect,
                                       f"tour_{os.getpid()}_{time.time_ns()}")
            outcome += made
            words = [url, *client_of(dialect, url)]
        outcome += count_summary(*log.run(
            ["python3", ROOT / "scripts/lib/tour.py",
             ROOT / "build/release/moontide", *words]))
    return outcome


def install(log):
    """An installed tree works under any prefix, far from the sources."""
    with tempfile.TemporaryDirectory(prefix="moontide-install-") as folder:
        prefix, app = pathlib.Path(folder) / "a prefix", pathlib.Path(folder) / "app"
        moontide = prefix / "bin/moontide"
        outcome = log.succeeds("cmake", "--install", "build/release", "--prefix",
                               prefix)
        if outcome.failed:
            return outcome
        outcome += log.succeeds(moontide, "new", app, cwd=folder)
        for words in (["check"], ["test"], ["run", "--until-idle"], ["status"]):
            outcome += log.succeeds(moontide, *words,
                                    cwd=app if app.is_dir() else folder)
        for name in ("bank", "orders"):
            example = prefix / "share/moontide/examples" / name
            outcome += log.succeeds(moontide, "test",
                                    cwd=example if example.is_dir() else folder)
        if not list((prefix / "share/moontide/sql").glob("*/schema/*.sql")):
            outcome += Outcome(0, 1, ["no SQL scripts were installed"])
        return outcome


# The first are the builds, one after the other; then as they are begun.
BUILDS = {
    "build-release": build("release"),
    "build-asan": build("asan"),
    "build-fuzz": build("fuzz"),
}
STEPS = {
    **BUILDS,
    "specs-postgres": specs_on("postgres"),
    "specs-mysql": specs_on("mysql"),
    "specs-asan": specs("asan", "."),
    "specs-release": specs("release", "."),
    # with servers of its own, for it crashes them
    "faults": own_script("scripts/faults", "--short",
                         MOONTIDE_SERVERS="servers-of-faults"),
    "check": own_script("scripts/check"),
    "ctest-release": c_tests("release"),
    "ctest-asan": c_tests("asan"),
    "fuzz": fuzz,
    "pooler": pooler,
    "bench": bench,
    "bank-dialects": bank_dialects,
    "orders-dialects": orders_dialects,
    "check-self": own_script("scripts/check", "--self-test"),
    "servers": servers,
    "tour": tour,
    "demo": demo,
    "bank-release": specs("release", "examples/bank"),
    "bank-asan": specs("asan", "examples/bank"),
    "orders-release": specs("release", "examples/orders"),
    "orders-asan": specs("asan", "examples/orders"),
    "writers": writers,
    "install": install,
}


def main():
    unknown = [name for name in sys.argv[1:] if name not in STEPS]
    if unknown:
        sys.exit(f"scripts/test: no step {', '.join(unknown)}; there are: "
                 + " ".join(STEPS))
    LOGS.mkdir(parents=True, exist_ok=True)
    # so that the servers are stopped then, too
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    names = sys.argv[1:] or STEPS
    lanes = concurrent.futures.ThreadPoolExecutor((os.cpu_count() or 1) + 1)
    try:
        total = sum(map(run_step, filter(BUILDS.get, names)), Outcome())
        others = [name for name in names if name not in BUILDS]
        total = sum(lanes.map(run_step, others), total)
    finally:
        for process in list(RUNNING):
            process.terminate()
        lanes.shutdown(cancel_futures=True)
        SERVERS.stop()
    print(f"{total.passed} passed, {total.failed} failed")
    sys.exit(1 if total.failed else 0)


def run_step(name):
    start = time.monotonic()
    step = Step(name)
    outcome = STEPS[name](step)
    if outcome.passed + outcome.failed == 0:
        outcome.failed = 1
    lines = [f"{name:15} {outcome.passed:5} passed {outcome.failed:4} failed"
             f" {time.monotonic() - start:7.1f} s"]
    if outcome.failed:
        lines += [f"    {line}" for line in outcome.lines[:SHOWN]]
        lines.append(f"    log: {step.log.relative_to(ROOT)}")
    print("\n".join(lines), flush=True)
    return outcome


if __name__ == "__main__":
    main()
