"""Check the site that mkdocs built: links, the reference, and how its first page looks.

    python tools/check_site.py [--site site] [--pictures FOLDER]

Each link to a page or a place on it must lead there. Each public name of a package must stand on the package's page.
The first pages are opened in Chromium, where there is one, on a desk and a phone, by day and by night: no error on the
console, no text cut off; pictures are written where asked for.
"""

import argparse
import ast
import functools
import http.server
import re
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from browser import CHROMIUM, VIEWS, Browser
from workspace import ROOT, packages

PAGES = ("", "getting-started/", "guides/options/", "peer-names/", "packages/thunder/")
"""What is opened in a browser."""


class Page(HTMLParser):
    """The links of a page, and the places on it that links may lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.places.update(filter(None, (given.get("id"), given.get("name"))))
        link = given.get("href") if tag in ("a", "link") else given.get("src") if tag in ("img", "script") else None
        if link is not None:
            self.links.append(link)


def broken(site: Path) -> Iterator[str]:
    """Yield the links that lead nowhere."""
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in sorted(site.rglob("*.html"))}
    for file, page in pages.items():
        if file.name == "404.html":  # its links are absolute, for wherever it is shown
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                yield f"{file.relative_to(site)}: {link} leads nowhere"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                yield f"{file.relative_to(site)}: {link}: there is no such place on the page"


def unformatted(site: Path) -> Iterator[str]:
    """Yield the pages that show the marks of Markdown."""
    for file in sorted(site.rglob("*.html")):
        if re.search(r"<code>python (notest|needs=\S+)\n", file.read_text(encoding="utf-8")):
            yield f"{file.relative_to(site)}: a block of code is not shown as one"


def public(face: Path) -> list[str]:
    """Return what a package says it exports, without submodules and ``__version__``."""
    tree = ast.parse(face.read_text(encoding="utf-8"))
    modules = {file.stem for file in face.parent.iterdir()}
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            names = [e.value for e in ast.walk(node.value) if isinstance(e, ast.Constant)]
            return [n for n in names if n not in modules and not str(n).startswith("__")]
    return []


def unmentioned(site: Path) -> Iterator[str]:
    """Yield the public names that do not stand on the page of their package."""
    for package in packages().values():
        page = site / "packages" / package.folder.name / "index.html"
        text = page.read_text(encoding="utf-8") if page.is_file() else ""
        places = Page(text).places
        for name in public(package.source / "__init__.py"):
            if f"{package.module}.{name}" not in places and f"<code>{name}</code>" not in text:
                yield f"{package.module}.{name} does not stand on packages/{package.folder.name}"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and writes no log."""

    def log_message(self, format: str, *args: object) -> None:
        pass


def ill_looking(site: Path, pictures: Path | None) -> Iterator[str]:
    """Yield what a browser complains of, and texts that are cut off."""
    serve = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server, Browser() as browser:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            for page in PAGES:
                for view in VIEWS:
                    name = page.strip("/").replace("/", "-") or "home"
                    picture = pictures / f"{name}-{view.name}.png" if pictures else None
                    seen = browser.look(f"http://127.0.0.1:{server.server_port}/{page}", view, picture)
                    yield from (f"{name} at {view.name}: {said}" for said in seen.wrong(view))
        finally:
            server.shutdown()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", type=Path, default=ROOT / "site")
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    site = options.site.resolve()
    if not (site / "index.html").is_file():
        print(f"there is no site in {site}: build it with mkdocs")
        return 1
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
    wrong = [*broken(site), *unformatted(site), *unmentioned(site)]
    if CHROMIUM is None:
        print("site: no Chromium here, so that nothing was looked at")
    else:
        wrong += ill_looking(site, options.pictures)
    print("\n".join(wrong) if wrong else "site: links lead somewhere, the reference is complete")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
