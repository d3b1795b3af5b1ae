"""The page on extending runs: its blocks, in order, in one namespace, as a reader would run them."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "extend.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
CALLS_AN_OPERATOR = 1  # the block in which the user's function calls an operator by its symbol
NAMESPACE: dict[str, object] = {"__name__": "page"}


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_each_block_runs(number: int, request: pytest.FixtureRequest) -> None:
    if number == CALLS_AN_OPERATOR:
        reason = "acquisition must give symbols that user code calls the proxies behind its tensors"
        request.applymarker(pytest.mark.xfail(reason=reason, strict=False))
    exec(compile(BLOCKS[number], f"{PAGE.name}, block {number}", "exec"), NAMESPACE)
