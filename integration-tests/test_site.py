"""The documentation: links in its sources lead somewhere, and pages look right in a browser."""

import importlib
import inspect
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

import thunder
from thunder_benchmarks import reports

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import browser  # noqa: E402
import check_site  # noqa: E402
import drawings  # noqa: E402
import reference  # noqa: E402
import workspace  # noqa: E402

LINK = re.compile(r"\[[^\]]+\]\((?!https?:|mailto:)([^)\s]+)\)")
FENCES = re.compile(r"^ *```.*?^ *```|`[^`\n]+`", re.M | re.S)
TEXTS = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("packages/*/*.md"))]


def places(text):
    """Return the anchors that headings of a Markdown file get."""
    headings = re.findall(r"^#+ (.+)$", FENCES.sub(lambda m: m[0] if m[0].count("`") == 2 else "", text), re.M)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", h).strip().lower()) for h in headings}


def test_links_in_the_sources_lead_somewhere():
    wrong = []
    for file in TEXTS:
        for link in LINK.findall(FENCES.sub("", file.read_text(encoding="utf-8"))):
            path, _, place = link.partition("#")
            page = re.fullmatch(r"(?:\.\./)*packages/([\w-]+)/index\.md", path)  # made of the package's README
            path = f"{ROOT}/packages/{page[1]}/README.md" if page else path
            target = (file.parent / path).resolve() if path else file
            if not target.exists():
                wrong.append(f"{file.relative_to(ROOT)}: {link}")
            elif (
                place
                and not page
                and target.suffix == ".md"
                and place not in places(target.read_text(encoding="utf-8"))
            ):
                wrong.append(f"{file.relative_to(ROOT)}: {link} (no such heading)")
    assert len(TEXTS) > 40 and wrong == []


def test_the_reference_has_every_public_name():
    assert reference.PAGE.read_text(encoding="utf-8") == reference.reference(), "run python tools/reference.py"


@pytest.mark.parametrize("name", drawings.DRAWINGS)
def test_a_drawing_is_what_its_function_draws_and_some_page_shows_it(name):
    picture = drawings.PICTURES / f"{name}.svg"
    assert picture.read_text(encoding="utf-8") == drawings.drawn(name), "run python tools/drawings.py"
    assert any([f"pictures/{name}.svg)" in text.read_text(encoding="utf-8") for text in TEXTS])
    ElementTree.fromstring(drawings.drawn(name))


@pytest.mark.parametrize("package", [p for p in workspace.packages().values() if "triton" not in p.name], ids=str)
def test_functions_and_classes_that_a_package_exports_have_a_text(package):
    module = importlib.import_module(package.module)
    exported = [(name, getattr(module, name)) for name in check_site.public(package.source / "__init__.py")]
    own = [(n, v) for n, v in exported if inspect.isclass(v) or inspect.isfunction(v)]
    assert [name for name, value in own if not inspect.getdoc(value)] == []


def test_broken_links_missing_names_and_marks_are_found(tmp_path):
    home = tmp_path / "index.html"
    home.write_text('<a href="there/">a</a><a href="#here">b</a><p id="here"></p><a href="#gone">c</a>')
    (tmp_path / "other.html").write_text("<code>python notest\nx</code>")
    assert list(check_site.broken(tmp_path)) == [
        "index.html: there/ leads nowhere",
        "index.html: #gone: there is no such place on the page",
    ]
    assert [said.split(":")[0] for said in check_site.unformatted(tmp_path)] == ["other.html"]
    assert "thunder_frontend.jit does not stand on packages/thunder-frontend" in check_site.unmentioned(tmp_path)


@pytest.fixture(scope="module")
def chromium():
    if browser.CHROMIUM is None:
        pytest.skip("needs Chromium")
    with browser.Browser() as opened:
        yield opened


def test_a_browser_finds_errors_and_texts_that_are_cut_off(chromium, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(
        "<style>body{background:#fff}</style><p style='width:50px;overflow:hidden;white-space:nowrap'>much too long a "
        "text for that</p><script>console.error('no such thing'); missing()</script>"
    )
    seen = chromium.look(page.as_uri(), browser.View(390), tmp_path / "page.png")
    assert seen.clipped == ["P: much too long a text for that"] and not seen.is_dark
    assert seen.console[0] == "no such thing" and "missing is not defined" in seen.console[1]
    assert seen.wrong(browser.View(390, dark=True))[-1] == "the background is rgb(255, 255, 255)"
    assert (tmp_path / "page.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("view", browser.VIEWS, ids=lambda view: view.name)
def test_a_report_looks_right(chromium, tmp_path, view):
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))
    page = tmp_path / "report.html"
    thunder.report(model, torch.randn(3, 4), path=page, measure=False)
    assert chromium.look(page.as_uri(), view).wrong(view) == []


SEARCH = """(() => {
  const field = document.getElementById("search");
  field.value = "scaled_dot_product";
  field.dispatchEvent(new Event("input"));
  return [document.getElementById("hits").textContent, document.querySelectorAll(".row.hit").length];
})()"""


def test_a_report_on_a_model_is_searched(chromium, tmp_path):
    page = tmp_path / "report.html"
    reports.reported("nanogpt", {"layers": 2, "width": 32, "heads": 2, "length": 16}, page)
    seen = chromium.look(page.as_uri(), browser.View(1300), script=SEARCH)
    assert seen.console == [] and seen.value[0].endswith(" lines") and seen.value[1] > 0
