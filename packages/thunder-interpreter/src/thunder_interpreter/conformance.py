"""Run CPython's regression tests plainly and interpreted, method by method, and compare.

``python -m thunder_interpreter.conformance test_grammar test_scope`` prints a table; ``--report FILE`` adds the results
of this version of Python to a file, out of which ``--markdown FILE`` makes a page. Each module runs in a process of its
own, with a limit of CPU time for each method; methods that time out or crash are reported as such, and the rest of the
module goes on in a new process. ``--python COMMAND`` names another Python to run them, and ``--tests FOLDER`` is where
its package ``test`` lies if it comes without: ``--python "node tools/pyodide.mjs"`` is CPython as WebAssembly.
"""

import argparse
import faulthandler
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thunder_interpreter import interpret

MODULES = """
test_grammar test_generators test_scope test_exceptions test_with test_unpack_ex test_extcall test_keywordonlyarg
test_positional_only_arg test_class test_super test_descr test_property test_decorators test_dictcomps test_listcomps
test_setcomps test_genexps test_iter test_contextlib test_functools test_itertools test_patma test_fstring
test_dataclasses test_enum test_coroutines test_asyncgen test_raise test_exception_group test_builtin test_operator
test_collections test_opcodes test_augassign test_compare test_named_expressions test_string_literals test_frame
test_type_annotations test_type_params test_type_aliases test_tstring
""".split()


PATIENCE = 10  # a method that waits may take this many times its limit of CPU time


class TooSlow(BaseException):
    """A test method ran past its limit."""


def cases(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    """All test methods of a suite."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from cases(test)
        else:
            yield test


def run_method(test: unittest.TestCase, interpreted: bool, limit: float) -> tuple[str, str]:
    """Run one method; ``(outcome, last lines of what went wrong)``."""

    def stop(*_: Any) -> None:
        raise TooSlow(f"more than {limit:g} s of CPU time")

    result = unittest.TestResult()
    try:
        with time_limit(limit, stop):
            if interpreted:
                interpret(test.run)(result)
            else:
                test.run(result)
    except TooSlow as error:
        return "timeout", str(error)
    except unittest.SkipTest as error:
        return "skipped", str(error)
    except BaseException as error:
        return "error", f"{type(error).__name__}: {error}"
    problems = [*result.errors, *result.failures]
    if problems:
        text = problems[0][1]
        if "TooSlow: more than" in text:
            return "timeout", f"more than {limit:g} s of CPU time"
        return "failed", text
    if result.skipped:
        return "skipped", result.skipped[0][1]
    return "passed", ""


@contextmanager
def time_limit(limit: float, stop: Callable[..., Any]) -> Iterator[None]:
    """Have ``stop`` called after ``limit`` seconds of CPU time, where there are timers."""
    if not hasattr(signal, "setitimer"):  # WebAssembly
        yield
        return
    previous = [signal.signal(number, stop) for number in (signal.SIGPROF, signal.SIGALRM)]
    signal.setitimer(signal.ITIMER_PROF, limit)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE * limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGPROF, previous[0])
        signal.signal(signal.SIGALRM, previous[1])


def worker(module: str, interpreted: bool, limit: float, path: str, done: set[str], only: str) -> None:
    """Run the methods of a module that are not in ``done``; append a line of JSON for each to ``path``."""
    faulthandler.enable()
    suite = unittest.defaultTestLoader.loadTestsFromName(f"test.{module}")
    with open(path, "a", encoding="utf-8") as out:
        for test in cases(suite):
            name = test.id()
            if name in done or only not in name:
                continue
            out.write(json.dumps([name, "crashed", "the process ended here", 0.0]) + "\n")
            out.flush()
            began = time.process_time()
            try:
                outcome, detail = run_method(test, interpreted, limit)
            except TooSlow as error:
                outcome, detail = "timeout", str(error)
            seconds = time.process_time() - began
            out.write(json.dumps([name, outcome, detail[-3000:], seconds]) + "\n")
            out.flush()


@dataclass(frozen=True)
class Python:
    """A Python that runs the tests.

    Args:
        command: the words that start it.
        tests: the folder of its package ``test``, where it comes without.
        patience: seconds that it gets for a module; methods that never end stop it on a Python without timers.
    """

    command: tuple[str, ...] = (sys.executable,)
    tests: str = ""
    patience: float = 3000

    def path(self) -> str:
        """The path on which this package and the tests are found."""
        own = str(Path(__file__).resolve().parent.parent)
        return os.pathsep.join(filter(None, [own, self.tests]))

    def version(self) -> str:
        """Its version."""
        words = [*self.command, "-c", "import platform, sys; print(platform.python_version(), sys.platform)"]
        version, system = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
        return f"{version} as WebAssembly" if system == "emscripten" else version


def run_module(
    module: str, interpreted: bool, limit: float, only: str, python: Python
) -> dict[str, tuple[str, str, float]]:
    """Outcome by method, in processes of their own."""
    results: dict[str, tuple[str, str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "results")
        Path(path).touch()
        for _ in range(20):
            before = len(results)
            command = [*python.command, "-m", "thunder_interpreter.conformance", "--worker", module]
            command += ["--limit", str(limit), "--results", path, "--only", only]
            command += ["--interpreted"] if interpreted else []
            run_worker(command, folder, python)
            for line in Path(path).read_text(encoding="utf-8").splitlines():
                name, outcome, detail, seconds = json.loads(line)
                results[name] = (outcome, detail, seconds)
            if len(results) == before or not any(outcome == "crashed" for outcome, _, _ in results.values()):
                break
    return results


def run_worker(command: list[str], folder: str, python: Python) -> None:
    """Run a worker to its end, or for as long as there is patience."""
    environment = {**os.environ, "PYTHONPATH": python.path()}
    nothing = subprocess.DEVNULL
    with subprocess.Popen(
        command, cwd=folder, stdin=nothing, stdout=nothing, stderr=nothing, env=environment
    ) as process:
        try:
            process.wait(timeout=python.patience)
        except subprocess.TimeoutExpired:
            process.kill()


def compare(module: str, limit: float, only: str, python: Python = Python()) -> tuple[int, dict[str, str], float]:
    """``(methods that pass plainly, those that fail interpreted and why, CPU seconds interpreted)``."""
    plain = run_module(module, False, limit, only, python)
    passing = {name for name, (outcome, _, _) in plain.items() if outcome == "passed"}
    interpreted = run_module(module, True, limit, only, python)
    bad = {}
    for name in sorted(passing):
        outcome, detail, _ = interpreted.get(name, ("missing", "", 0.0))
        if outcome != "passed":
            bad[name] = f"{outcome}: {detail}"
    return len(passing), bad, sum(seconds for _, _, seconds in interpreted.values())


def last_line(text: str) -> str:
    """The line of a traceback that says most."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


REASONS: tuple[tuple[str, str], ...] = (
    ("test_patma.TestTracing", "trace functions (`sys.settrace`) get no events from interpreted code"),
    ("test_slots", "counts the objects that the garbage collector sees, and the interpreter's own are among them"),
    ("test_type_lookup_mro_reference", "changes the bases of a class from inside the lookup of an attribute in it"),
    ("test_special_method_lookup", "`__length_hint__` is called natively when a list is made of a user's iterable"),
    ("test_unawaited_warning_when_module_broken", "breaks the `warnings` module that the warning is sent through"),
    ("test_long_chain_of_empty_iterables", "runs ten million generator steps, past the time limit"),
    ("testSettingException", "an exception that C code makes only when it is asked for has an entry too many"),
    ("test_partial_as_method", "a warning that C code issues names a line of the interpreter"),
    ("test_reduce_mutating_builtins_iter", "changes the builtins from inside a comparison of their names"),
    ("test_eval_builtins_mapping_reduce", "replaces the dictionary of the builtins while `eval` runs"),
    ("test_frame.TestCAPI", "functions of C that ask for a frame object refuse the interpreter's"),
    ("test_frame.TestFrameCApi", "C code that asks for the variables of its caller gets the interpreter's"),
    ("TestFrameLocals.test_delete", "variables that are not the function's can be removed, as from Python 3.13.1 on"),
    ("test_sneaky_frame_object", "what the garbage collector calls sees frames of the interpreter"),
)


def reason(name: str, line: str) -> str:
    """Why a method fails, as far as it is known."""
    for part, text in REASONS:
        if part in name:
            return text
    return f"`{line[:150]}`"


def page(report: dict[str, Any]) -> str:
    """The results as Markdown."""
    lines = [
        "# Conformance",
        "",
        "CPython's own regression tests, method by method: of those that pass when Python runs them, how many pass",
        "when this package runs them. Made by",
        "`python -m thunder_interpreter.conformance --report conformance.json --markdown CONFORMANCE.md`",
        "on each version of Python. Methods that need what a platform lacks (WebAssembly has no threads, processes and",
        "sockets) do not pass plainly, and are not counted.",
    ]
    for version, modules in sorted(report.items()):
        total = sum(found["passing"] for found in modules.values())
        failing = sum(len(found["failing"]) for found in modules.values())
        share = 100 * (total - failing) / max(total, 1)
        lines += ["", f"## Python {version}: {total - failing} of {total} ({share:.2f} %)", ""]
        lines += ["| module | pass | of |", "|---|---:|---:|"]
        for module, found in modules.items():
            if not found["passing"]:  # it is not there in this version
                continue
            lines.append(f"| {module} | {found['passing'] - len(found['failing'])} | {found['passing']} |")
        if failing:
            lines += ["", "Failing, with the reason (or the last line of the error, where none is known):", ""]
        for found in modules.values():
            lines += [f"- `{name}`: {reason(name, line)}" for name, line in found["failing"].items()]
    return "\n".join(lines) + "\n"


def keep(file: Path, markdown: str | None, version: str, module: str, found: dict[str, Any]) -> None:
    """Add the results of a module to the report, and write the page."""
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    known.setdefault(version, {})[module] = found
    file.write_text(json.dumps(known, indent=1, sort_keys=True), encoding="utf-8")
    if markdown:
        Path(markdown).write_text(page(known), encoding="utf-8")


def main() -> int:
    """Run as a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", help="modules of Lib/test; all those of the specification by default")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of CPU time for each method")
    parser.add_argument("--only", default="", help="only methods whose name contains this")
    parser.add_argument("--verbose", action="store_true", help="print the whole traceback of each failure")
    parser.add_argument("--report", help="JSON file that the results are added to")
    parser.add_argument("--markdown", help="page that is made of the report")
    parser.add_argument("--python", default="", help="the command of another Python that runs the tests")
    parser.add_argument("--tests", default="", help="the folder that holds the package `test` of that Python")
    parser.add_argument("--patience", type=float, default=3000, help="seconds for a module at most")
    parser.add_argument("--worker")
    parser.add_argument("--interpreted", action="store_true")
    parser.add_argument("--results")
    options = parser.parse_args()
    if options.worker:
        done = {json.loads(line)[0] for line in Path(options.results).read_text(encoding="utf-8").splitlines()}
        worker(options.worker, options.interpreted, options.limit, options.results, done, options.only)
        return 0
    command = tuple([_from_here(word) for word in shlex.split(options.python)]) or (sys.executable,)
    python = Python(command, options.tests and _from_here(options.tests), options.patience)
    version = python.version()
    total = failures = 0
    for module in options.modules or MODULES:
        passing, bad, seconds = compare(module, options.limit, options.only, python)
        total += passing
        failures += len(bad)
        if options.report:
            found = {"passing": passing, "failing": {name: last_line(text) for name, text in bad.items()}}
            keep(Path(options.report), options.markdown, version, module, found)
        print(f"{module:28} {passing - len(bad):5} of {passing:5}   {seconds:7.1f} s", flush=True)
        for name, text in bad.items():
            print(f"    {name}: {text if options.verbose else last_line(text)[:200]}", flush=True)
    share = 100 * (total - failures) / max(total, 1)
    passed = f"{total - failures} of {total} methods that pass plainly pass ({share:.2f} %)"
    print(f"Python {version}: {passed}")
    return 0 if share >= 98 else 1


def _from_here(word: str) -> str:
    """A word of a command; what names something here names it from any folder."""
    return str(Path(word).absolute()) if Path(word).exists() else word


if __name__ == "__main__":
    sys.exit(main())
