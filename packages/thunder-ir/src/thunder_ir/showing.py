"""Programs as notebooks show them: coloured where pygments is installed, plain where it is not."""

import html
import importlib
from importlib.util import find_spec


def as_html(text: str) -> str:
    """Return Python source as HTML.

    Args:
        text: the source.

    Example:
        >>> from thunder_ir.showing import as_html
        >>> "<pre" in as_html("x = 1") and as_html("a < b").count("&lt;")
        1
    """
    if find_spec("pygments") is None:
        return f"<pre>{html.escape(text)}</pre>"
    pygments = importlib.import_module("pygments")  # here: only a notebook needs it
    lexer = importlib.import_module("pygments.lexers.python").PythonLexer()
    formatter = importlib.import_module("pygments.formatters.html").HtmlFormatter(noclasses=True, nobackground=True)
    return str(pygments.highlight(text, lexer, formatter))


__all__ = ["as_html"]
