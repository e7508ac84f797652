"""Settings of the documentation site: ``make docs`` builds it, from what is installed, offline."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duolog
from sphinx.domains.python import PythonDomain
from sphinx.pycode.parser import Parser

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.domains.python import ObjectEntry
    from sphinx.environment import BuildEnvironment

project = "Duolog"
author = "Duolog contributors"
copyright = author
version = release = duolog.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
root_doc = "index"

# Markdown: links to headings, as GitHub makes them.
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # the changelog begins each section at the third level

# The reference, from docstrings in Google's style; types are in the signatures.
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_use_type_comments = False  # there are none, and to look for them takes long
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
python_use_unqualified_type_names = True
toc_object_entries = False

smartquotes_action = "qe"  # two hyphens begin an option, and stay

# Every link is checked, but for types in signatures: those of other libraries, and those that the
# reference leaves out, are shown without a link.
nitpicky = True
nitpick_ignore_regex = [("py:(class|data|exc|obj)", ".*")]

# The site: system fonts, nothing from elsewhere.
html_theme = "furo"
html_title = f"Duolog {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).with_name("search-order.js"))
html_extra_path = ["llms.txt"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "sidebar_hide_name": False,
    "light_css_variables": {"color-brand-primary": "#0b5d75", "color-brand-content": "#0b5d75"},
    "dark_css_variables": {"color-brand-primary": "#6cc7e0", "color-brand-content": "#6cc7e0"},
}


def setup(app: Sphinx) -> None:
    """Reads docstrings of attributes as prose, lets long names break, and mends the theme's markup."""
    app.add_domain(ReferenceDomain, override=True)
    Parser.parse_definition = _no_definitions  # type: ignore[method-assign]
    app.connect("autodoc-process-docstring", _is_prose, priority=400)  # napoleon comes at 500
    app.connect("html-page-context", _break_names)
    app.connect("build-finished", _make_accessible)


def _no_definitions(self: Parser) -> None:
    """Pages that show sources need the lines of each definition. There are no such pages, and finding the lines
    takes long.
    """


def _is_prose(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Without this, a colon in the first line of an attribute's docstring makes it a type."""
    if what in ("attribute", "data", "property"):
        lines.insert(0, "")


class ReferenceDomain(PythonDomain):
    """The domain of Python without searches that find nothing. Most types in signatures belong to other
    libraries, and Sphinx would compare each with the names of all objects: a sixth of the build.
    """

    _searched = 0
    _last_names: frozenset[str] = frozenset()

    def find_obj(
        self,
        env: BuildEnvironment,
        modname: str,
        classname: str,
        name: str,
        type: str | None,
        searchmode: int = 0,
    ) -> list[tuple[str, ObjectEntry]]:
        """Finds objects by a name, or by the end of one."""
        if self._searched != len(self.objects):
            self._searched = len(self.objects)
            self._last_names = frozenset(known.rpartition(".")[2] for known in self.objects)
        if name.removesuffix("()").rpartition(".")[2] not in self._last_names:
            return []
        return super().find_obj(env, modname, classname, name, type, searchmode)


_LONG_NAME = re.compile(r'(?<=<span class="pre">)[\w./]{24,}(?=</span>)')
_OPTION = re.compile(r'(?<=<span class="pre)(?=">--[\w-]{1,24}</span>)')


def _break_names(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    if "body" in context:
        context["body"] = _LONG_NAME.sub(
            lambda found: re.sub(r"[./]", r"\g<0><wbr>", found[0]), context["body"]
        )
        context["body"] = _OPTION.sub(" option", context["body"])


_ACCESSIBLE = (
    (
        'role="heading"><span class="caption-text"',
        'role="heading" aria-level="2"><span class="caption-text"',
    ),
    ("<pre>", '<pre tabindex="0">'),
    ('<table class="docutils', '<table tabindex="0" class="docutils'),
    ('<p><img alt="Actors and products', '<p tabindex="0"><img alt="Actors and products'),
    ('<aside class="sidebar-drawer"', '<aside aria-label="Pages" class="sidebar-drawer"'),
    ('<aside class="toc-drawer"', '<aside aria-label="On this page" class="toc-drawer"'),
)
"""Captions need a level, parts of a page need different names, and a wide block has to be reached by the keyboard to be
scrolled.
"""


def _make_accessible(app: Sphinx, problem: Exception | None) -> None:
    if problem is not None or app.builder.format != "html":
        return
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for found, mended in _ACCESSIBLE:
            text = text.replace(found, mended)
        page.write_text(text, encoding="utf-8")
