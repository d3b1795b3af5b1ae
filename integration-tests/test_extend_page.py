"""The page on extending runs: its blocks, in order, in one namespace, as a reader would run them."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "extend.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
NAMESPACE: dict[str, object] = {"__name__": "page"}


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_each_block_runs(number: int) -> None:
    exec(compile(BLOCKS[number], f"{PAGE.name}, block {number}", "exec"), NAMESPACE)
