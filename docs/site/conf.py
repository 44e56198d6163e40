"""Sphinx reads the pages that docs/site/stage.py assembles; scripts/site runs both."""
import os
import pathlib
import sys

sys.path[:0] = [os.environ["LOCKSTEP_PYTHON"], str(pathlib.Path(__file__).parent)]
from docstrings import as_rst  # noqa: E402

project = "Lockstep"
copyright = "the authors of Lockstep, Apache-2.0"
version = release = os.environ["LOCKSTEP_VERSION"]
extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "index"
myst_heading_anchors = 4
suppress_warnings = ["myst.header", "misc.highlighting_failure"]  # pages that begin below a first-level heading, pieces of CMake
html_theme = "furo"
html_title = f"Lockstep {version}"
html_static_path = ["_static"]
html_css_files = ["lockstep.css"]
html_copy_source = False
html_show_search_summary = False  # it would fetch pages, which browsers refuse to pages of a folder
html_show_sphinx = False
pygments_style = "default"
pygments_dark_style = "github-dark"
autodoc_default_options = {"members": True, "undoc-members": False}
autodoc_member_order = "bysource"
autodoc_typehints = "none"


def setup(app):
    def rewrite(_app, _what, _name, _obj, _options, lines):
        lines[:] = as_rst(lines)

    app.connect("autodoc-process-docstring", rewrite)
