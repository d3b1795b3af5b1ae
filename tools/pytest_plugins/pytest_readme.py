"""Runs the Python code blocks of Markdown files as tests, so that what a README shows is true.

The blocks of a file are one test and share one namespace, from top to bottom, as a reader would type them. A block with
``>>>`` prompts is a doctest; any other is executed. An indented block without a fence is Python if it can be read so. A
block fenced as ``python notest`` is not run; say why beside it. One fenced as ``python needs=peft`` is a test of its
own, which is skipped where that module is not installed. Files that a block writes are gone afterwards.
"""

import ast
import contextlib
import doctest
import importlib.util
import linecache
import re
import tempfile
import textwrap
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<code>.*?)^(?P=indent)``` *$", re.M | re.S)
INDENTED = re.compile(r"(?:(?<=\n\n)|\A)(?P<code>(?: {4}.*\n|\n(?= {4}))+)")
NEEDS = re.compile(r"\bneeds=([\w.]+)")
ITEM = re.compile(r" *(?:[-*]|\d+\.) ")
FLAGS = doctest.ELLIPSIS


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix == ".md":
        return MarkdownFile.from_parent(parent, path=file_path)
    return None


class MarkdownFile(pytest.File):
    """A Markdown file with Python blocks."""

    def collect(self) -> Iterator[pytest.Item]:
        text = self.path.read_text(encoding="utf-8")
        found = list(blocks(text))
        if found:
            yield MarkdownBlocks.from_parent(self, name="python blocks", blocks=found)
        for line, code, module in blocks_with_needs(text):
            made = MarkdownBlocks.from_parent(self, name=f"block with {module}, line {line}", blocks=[(line, code)])
            absent = importlib.util.find_spec(module) is None
            made.add_marker(pytest.mark.skipif(absent, reason=f"needs {module}"))
            yield made


class MarkdownBlocks(pytest.Item):
    """All Python blocks of one file, in order."""

    def __init__(self, *, blocks: list[tuple[int, str]], **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.blocks = blocks

    def runtest(self) -> None:
        namespace: dict[str, object] = {"__name__": "__main__"}
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            for line, code in self.blocks:
                if ">>>" in code:
                    run_doctest(code, namespace, self.path, line)
                else:
                    run_code(code, namespace, self.path, line)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        if isinstance(excinfo.value, doctest.DocTestFailure):
            failure = excinfo.value
            where = f"{self.path}:{failure.test.lineno + failure.example.lineno + 1}"
            report = doctest.OutputChecker().output_difference(failure.example, failure.got, FLAGS)
            return f"{where}\n{textwrap.indent(failure.example.source, '    ')}{report}"
        if isinstance(excinfo.value, doctest.UnexpectedException):
            failure = excinfo.value
            where = f"{self.path}:{failure.test.lineno + failure.example.lineno + 1}"
            return f"{where}\n{textwrap.indent(failure.example.source, '    ')}{failure.exc_info[1]!r}"
        inside = [entry for entry in excinfo.traceback if str(entry.path).startswith("<")]  # from the block on
        first = inside[0]._rawentry if inside else excinfo.tb
        return "".join(traceback.format_exception(excinfo.type, excinfo.value, first))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.blocks[0][0] - 1, "python blocks"


def blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the code of every block of Python in a Markdown text that is to be run."""
    found = []
    for match in FENCE.finditer(text):
        words = match["info"].replace("{", " ").replace("}", " ").split()
        if (
            words
            and words[0] in ("python", "py", "pycon")
            and "notest" not in words
            and not NEEDS.search(match["info"])
        ):
            found.append((match.start("code"), textwrap.dedent(match["code"])))
    unfenced = FENCE.sub(lambda fenced: re.sub(r"[^\n]", "#", fenced[0]), text)
    for match in INDENTED.finditer(unfenced):
        code = textwrap.dedent(match["code"])
        if not in_a_list(unfenced[: match.start()]) and is_python(code):
            found.append((match.start("code"), code))
    for start, code in sorted(found):
        yield text.count("\n", 0, start) + 1, code


def blocks_with_needs(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, code and module of every block of Python that needs a module which may be absent."""
    for match in FENCE.finditer(text):
        if needs := NEEDS.search(match["info"]):
            yield text.count("\n", 0, match.start("code")) + 1, textwrap.dedent(match["code"]), needs[1]


def in_a_list(before: str) -> bool:
    """Whether what is indented behind a text goes on with an item of a list."""
    for line in reversed(before.splitlines()):
        if ITEM.match(line):
            return True
        if line and not line.startswith(" "):
            return False
    return False


def is_python(code: str) -> bool:
    """Whether a block can be read as Python, or as a session of it."""
    try:
        return ">>>" in code or bool(ast.parse(code).body)
    except SyntaxError:
        return False


def run_doctest(code: str, namespace: dict[str, object], path: Path, line: int) -> None:
    test = doctest.DocTestParser().get_doctest(code, namespace, path.name, str(path), line - 1)
    test.globs = namespace  # get_doctest copies it, and later blocks need what this one defines
    doctest.DebugRunner(optionflags=FLAGS, verbose=False).run(test, clear_globs=False)


def run_code(code: str, namespace: dict[str, object], path: Path, line: int) -> None:
    # The name is that of no file: what is compiled here finds its own lines, padded to those of the Markdown.
    name = f"<{path}:{line}>"
    padded = "\n" * (line - 1) + code
    linecache.cache[name] = (len(padded), None, padded.splitlines(keepends=True), name)
    exec(compile(padded, name, "exec"), namespace)
