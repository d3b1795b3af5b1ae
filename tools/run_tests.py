"""Run the tests of all packages, the integration tests, the doctests of docstrings, and the code of READMEs and docs.

    python tools/run_tests.py                           everything, a summary per package, `N passed, N failed`
    python tools/run_tests.py thunder-ir integration    some of it
    python tools/run_tests.py README.md thunder-ir integration-tests/test_site.py    files, too
    python tools/run_tests.py -k word                   everything else is passed on to pytest
    python tools/run_tests.py --package packages/thunder-ir [words for pytest]     one package, pytest's own output

A process of pytest runs one package, or a share of its test files where it has many; as many processes run at once as
the machine has cores. How long files took is kept in `.hatch/reports`, so that the longest start first the next time.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORTS = Path(os.environ.get("THUNDER_TEST_REPORTS") or ROOT / ".hatch" / "reports")
TIMES = ROOT / ".hatch" / "reports" / "times.json"
PLUGINS = ROOT / "tools" / "pytest_plugins"
SHARE_SECONDS = 90.0  # a package whose files take longer is shared out
SILENCE_SECONDS = 900.0  # a process in which no test ends for so long is killed
BYTES_PER_SECOND = 2000  # what a test file is guessed to take until it has been run once
NO_TESTS = 5  # pytest's exit status where nothing was collected
COLUMNS = ("passed", "failed", "skipped", "xfailed")


@dataclass
class Share:
    """Some paths of one package, run by one process, and what came of it."""

    package: str
    paths: list[str]
    weight: float
    number: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    files: dict[str, list] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)  # of the files
    seconds: float = 0.0
    heard: float = 0.0
    process: subprocess.Popen | None = None
    trouble: str = ""

    @property
    def log(self) -> Path:
        """Where pytest's own output goes."""
        return REPORTS / f"{self.package}-{self.number}.log"


class Run:
    """All shares, run side by side, with one line printed for each finished file."""

    def __init__(self, shares: list[Share], words: list[str], workers: int) -> None:
        self.shares = shares
        self.words = words
        self.workers = workers
        self.start = time.monotonic()
        self.printing = threading.Lock()
        self.first_test: float | None = None

    def all(self) -> None:
        """Run every share."""
        with ThreadPoolExecutor(self.workers) as pool:
            done = [pool.submit(self.one, share) for share in self.shares]
            threading.Thread(target=self.watch, daemon=True).start()
            for future in done:
                future.result()

    def one(self, share: Share) -> None:
        """Run one share in a process of its own, and count what it sends."""
        start = share.heard = time.monotonic()
        reader, writer = os.pipe()
        command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "--doctest-modules"]
        command.append("--continue-on-collection-errors")  # they are counted, and hide nothing else
        with open(share.log, "w", encoding="utf-8") as log:
            share.process = subprocess.Popen(
                [*command, "-p", "pytest_readme", "-p", "pytest_events", *self.words, *share.paths],
                cwd=ROOT,
                env=self.environment(writer),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[writer],
                start_new_session=True,  # so that a silent one is killed with what it started
            )
            os.close(writer)
            with os.fdopen(reader) as events:
                self.listen(share, events)
            status = share.process.wait()
        share.seconds = time.monotonic() - start
        if status not in (0, 1, NO_TESTS) and not share.counts["failed"] and not share.trouble:
            share.trouble = f"pytest ended with status {status}"
        if share.trouble:
            share.counts["failed"] += 1
        if share.counts["failed"]:
            self.say(f"\n{share.package}: {share.trouble or 'failures'}\n{share.log.read_text(encoding='utf-8')}")

    def environment(self, writer: int) -> dict[str, str]:
        """Give each process its share of the cores, and a way to report."""
        cores = max(1, (os.cpu_count() or 1) // self.workers)
        paths = [str(PLUGINS), os.environ.get("PYTHONPATH", "")]
        return {
            "OMP_NUM_THREADS": str(cores),
            "CI": "true",  # hypothesis then tries the same examples each time, and sets no deadlines
            **os.environ,
            "THUNDER_TEST_EVENTS": str(writer),
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        }

    def listen(self, share: Share, events) -> None:
        """Count the events of a share until its process ends; print each file when the next one begins."""
        current = None
        for line in events:
            event = json.loads(line)
            share.heard = time.monotonic()
            file, outcome = event["file"], event["outcome"]
            if outcome == "started":
                if self.first_test is None:
                    self.first_test = time.monotonic() - self.start
                    self.say(f"first test after {self.first_test:.1f} s")
                continue
            if current is not None and file != current:
                self.say_file(share, current)
            current = file
            counts = share.files.setdefault(file, [Counter(), 0.0])
            counts[0][outcome] += 1
            counts[1] += event["seconds"]
            share.counts[outcome] += 1
        if current is not None:
            self.say_file(share, current)

    def watch(self) -> None:
        """Kill what has been silent for too long."""
        while True:
            time.sleep(5)
            for share in self.shares:
                running = share.process is not None and share.process.poll() is None
                if running and time.monotonic() - share.heard > SILENCE_SECONDS:
                    share.trouble = f"killed, as no test ended for {SILENCE_SECONDS:.0f} s"
                    os.killpg(share.process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """End what is running."""
        for share in self.shares:
            if share.process is not None and share.process.poll() is None:
                os.killpg(share.process.pid, signal.SIGKILL)

    def say_file(self, share: Share, file: str) -> None:
        counts, seconds = share.files[file]
        found = ", ".join(f"{counts[c]} {c}" for c in COLUMNS if counts[c])
        self.say(f"{file}  {found}  {seconds:.1f} s")
        with self.printing:  # at once: what ended is known, too, of a run that is cut off
            share.ended.add(file)
            put(REPORTS / "files.json", json.dumps(ended_of(self)))

    def say(self, text: str) -> None:
        with self.printing:
            print(text, flush=True)


def plan(wanted: list[str]) -> list[Share]:
    """Share out what is to be run, the longest first."""
    times = json.loads(TIMES.read_text()) if TIMES.is_file() else {}
    shares: list[Share] = []
    for folder in sorted(ROOT.glob("packages/*")):
        if (folder / "pyproject.toml").is_file() and (not wanted or folder.name in wanted):
            shares += share_out(folder.name, test_files(folder), package_paths(folder), times)
    if not wanted or "integration" in wanted:
        folder = ROOT / "integration-tests"
        texts = [ROOT / "README.md", ROOT / "docs", folder / "README.md"]
        shares += share_out("integration", test_files(folder), [relative(p) for p in texts if p.exists()], times)
    shares.sort(key=lambda share: -share.weight)
    # One that needs no torch goes before them all, so that the first test starts while torch is being imported.
    quick = [i for i, share in enumerate(shares) if share.package in torch_free() and share.weight]
    return [shares.pop(quick[-1]), *shares] if quick else shares


def narrow(shares: list[Share], files: list[str]) -> list[Share]:
    """Keep of shares the files named, which may lie in a folder that a share has."""
    for share in shares:
        share.paths = [f for f in files if any([f == path or f.startswith(f"{path}/") for path in share.paths])]
    return [share for share in shares if share.paths]


def torch_free() -> set[str]:
    """Name the packages without PyTorch."""
    boundaries = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["boundaries"]
    return {module.replace("_", "-") for module in boundaries["torch-free"]}


def test_files(folder: Path) -> list[Path]:
    """Find the test files of a package, or of the integration tests."""
    return sorted(p for p in folder.rglob("test_*.py") if "src" not in p.relative_to(folder).parts)


def package_paths(folder: Path) -> list[str]:
    """Name what is tested beside the test files: docstrings, and the code of the README."""
    return [relative(p) for p in (folder / "src", folder / "README.md") if p.exists()]


def share_out(package: str, files: list[Path], rest: list[str], times: dict[str, float]) -> list[Share]:
    """Split the files of a package into shares of about ``SHARE_SECONDS``; the docstrings go with the first."""
    shares = [Share(package, rest, sum(times.get(path, 1.0) for path in rest))]
    for file in files:
        name = relative(file)
        seconds = times.get(name, file.stat().st_size / BYTES_PER_SECOND)
        if shares[-1].weight + seconds > SHARE_SECONDS and shares[-1].paths:
            shares.append(Share(package, [], 0.0, len(shares)))
        shares[-1].paths.append(name)
        shares[-1].weight += seconds
    return [share for share in shares if share.paths]


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def counts_of(run: Run) -> dict[str, Counter[str]]:
    """Add up the shares per package."""
    counts: dict[str, Counter[str]] = {}
    for share in sorted(run.shares, key=lambda s: s.package):
        counts.setdefault(share.package, Counter()).update(share.counts)
    return counts


def files_of(run: Run) -> dict[str, dict[str, Counter[str]]]:
    """List per package what each file came to; of a process that did not come to its end, all that it was to run."""
    found: dict[str, dict[str, Counter[str]]] = {}
    for share in run.shares:
        failed = {path: Counter(failed=1) for path in share.paths if share.trouble}
        counts = {name: counts for name, (counts, _) in share.files.items()}
        found.setdefault(share.package, {}).update(failed or counts)
    return found


def ended_of(run: Run) -> dict[str, dict[str, Counter[str]]]:
    """List per package what each file came to that has come to its end."""
    found: dict[str, dict[str, Counter[str]]] = {}
    for share in run.shares:
        found.setdefault(share.package, {}).update({name: share.files[name][0] for name in share.ended})
    return found


def summary(run: Run) -> str:
    """Say how it went, package by package."""
    packages = counts_of(run)
    width = max(map(len, packages), default=0)
    lines = [f"{'package':{width}}" + "".join(f"{c:>9}" for c in COLUMNS) + "  seconds"]
    total: Counter[str] = Counter()
    for package, counts in packages.items():
        seconds = sum(share.seconds for share in run.shares if share.package == package)
        lines.append(f"{package:{width}}" + "".join(f"{counts[c]:9}" for c in COLUMNS) + f"{seconds:9.1f}")
        total += counts
    lines.append(f"{'all':{width}}" + "".join(f"{total[c]:9}" for c in COLUMNS))
    lines.append(f"took {time.monotonic() - run.start:.0f} s; first test after {run.first_test or 0:.1f} s")
    lines.append(f"{total['passed']} passed, {total['failed']} failed")
    return "\n".join(lines)


def remember(run: Run) -> None:
    """Keep how long each file took."""
    times = json.loads(TIMES.read_text()) if TIMES.is_file() else {}
    for share in run.shares:
        for name, (_, seconds) in share.files.items():
            times[name] = round(seconds, 2)
    TIMES.parent.mkdir(parents=True, exist_ok=True)
    put(TIMES, json.dumps(times, indent=0, sort_keys=True))


def put(file: Path, text: str) -> None:
    """Write a file in one step, as another run may be reading it."""
    partial = file.with_suffix(f".{os.getpid()}")
    partial.write_text(text, encoding="utf-8")
    partial.replace(file)


def everything(words: list[str]) -> int:
    """Run all that is asked for, and say how it went."""
    known = {"integration", *(p.name for p in ROOT.glob("packages/*") if (p / "pyproject.toml").is_file())}
    wanted = [word for word in words if word in known]
    files = [word for word in words if word not in known and (ROOT / word).is_file()]
    shares = plan(wanted) if wanted or not files else []
    shares += narrow([share for share in plan([]) if share.package not in wanted], files)
    REPORTS.mkdir(parents=True, exist_ok=True)
    passed_on = [word for word in words if word not in known and word not in files]
    run = Run(shares, passed_on, max(1, min(os.cpu_count() or 1, 8)))
    try:
        run.all()
    except KeyboardInterrupt:
        run.kill()
        print("interrupted", file=sys.stderr)
        return 130
    if not passed_on:
        remember(run)
    text = summary(run)
    (REPORTS / "summary.txt").write_text(text + "\n", encoding="utf-8")
    put(REPORTS / "files.json", json.dumps(files_of(run)))
    print("\n" + text)
    failed = any(share.counts["failed"] for share in run.shares)
    passed = any(share.counts["passed"] for share in run.shares)
    return 0 if passed and not failed else 1


def one_package(folder: Path, words: list[str]) -> int:
    """Run one package's tests in this process's place, with pytest's own output."""
    named = any(Path(word.split("::")[0]).exists() for word in words)
    paths = [] if named else [f"{folder}/tests", *package_paths(folder)]
    os.environ["PYTHONPATH"] = str(PLUGINS)
    command = [sys.executable, "-m", "pytest", "--doctest-modules", "-p", "pytest_readme", *words, *paths]
    os.chdir(ROOT)
    os.execv(sys.executable, command)


def main() -> int:
    words = sys.argv[1:]
    if words[:1] == ["--package"]:
        return one_package((ROOT / words[1]).resolve(), words[2:])
    return everything(words)


if __name__ == "__main__":
    sys.exit(main())
