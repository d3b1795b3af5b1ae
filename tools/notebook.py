"""Write docs/getting-started.ipynb, a notebook of the page of that name: a cell for each block of code and text.

python tools/notebook.py
"""

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "getting-started.md"
NOTEBOOK = PAGE.with_suffix(".ipynb")
FENCE = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)[^)\s]+\)")
SITE = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}


def notebook(text: str) -> str:
    """Return the notebook of a page, as text.

    Args:
        text: of the page, in Markdown. Links to other pages are left out: a notebook has none beside it.
    """
    cells = []
    for place, part in enumerate(FENCE.split(text)):  # text and code in turns
        if part.strip():
            source = part.strip() if place % 2 else LINK.sub(r"\1", part.strip())
            cells.append(cell("code" if place % 2 else "markdown", len(cells), source))
    made = {"cells": cells, "metadata": SITE, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def cell(kind: str, place: int, source: str) -> dict[str, object]:
    """Return a cell."""
    more: dict[str, object] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "id": f"cell-{place}", "metadata": {}, "source": source.splitlines(True), **more}


def main() -> None:
    NOTEBOOK.write_text(notebook(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
