"""Extension of griffe: reads the `Example:` of our docstrings as the section that it calls `Examples:`."""

import re

import griffe


class Examples(griffe.Extension):
    """Renames the section, so that doctests are shown as code."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.M)
