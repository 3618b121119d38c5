"""The site: executed pages, a gallery made from the derivations, formulas as MathML; nothing is fetched."""

import os
import sys
from itertools import chain, islice
from pathlib import Path

from docutils.nodes import SkipNode
from jupyter_cache import get_cache

sys.path.insert(0, str(Path(__file__).parent))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # pages are executed side by side, one on each processor

import file_rows
import gallery_of_derivations
import inventories
import kernels
import paper_rows
from sphinx.util.parallel import make_chunks
from sphinx_gallery.sorting import ExplicitOrder, FileNameSortKey

import symcavity
from symcavity.evaluate.solutions.solution import Solution
from symcavity.writing.mathml import element
from symcavity.writing.reader import read

BLOCK = ' display="block"'
project, author, copyright = "symcavity", "the authors of symcavity", "the authors of symcavity"  # noqa: A001
version = release = symcavity.__version__
BUILT = Path(__file__).parent / "_build"
ENGINE = gallery_of_derivations.fingerprint()  # what was executed with another engine is executed again
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.intersphinx"]
extensions += ["sphinx_gallery.gen_gallery", "sphinx_copybutton"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
exclude_patterns = ["_build", "jupyter_execute", "README.md", "gallery/*.ipynb", "gallery/*.py", "gallery/*.md5"]
exclude_patterns += ["**/GALLERY_HEADER.rst"]
root_doc = "index"
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache", "misc.highlighting_failure"]

nb_execution_mode = "cache"
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_execution_cache_path = str(BUILT / f"pages-{ENGINE}")
nb_render_markdown_format = "myst"
get_cache(nb_execution_cache_path).db  # noqa: B018 - made here, once: several processes will write to it
kernels.start(BUILT / "jupyter")
nb_merge_streams = True

intersphinx_mapping = inventories.write(BUILT / "inventories")  # names of SymPy and others lead to their pages
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "pydata_sphinx_theme"
html_title = "symcavity"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {path.stem: [] for path in Path(__file__).parent.glob("*.md")}
html_theme_options = {
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_with_keys": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_sourcelink_suffix = ""
html_show_sourcelink = False
html_math_renderer = "mathml"

paper_rows.write(BUILT / "paper_rows.md")
file_rows.write(BUILT / "file_rows.md")
gallery_of_derivations.write(Path(__file__).parent / "_gallery_scripts")
sphinx_gallery_conf = {
    "examples_dirs": "_gallery_scripts",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "default_thumb_file": str(Path(__file__).parent / "pictures" / "method.png"),  # of what has no picture of its own
    "image_scrapers": (gallery_of_derivations.scraper,),
    "capture_repr": ("_repr_html_", "__str__"),
    "within_subsection_order": FileNameSortKey,
    "subsection_order": ExplicitOrder(["*"]),
    "download_all_examples": False,
    "show_memory": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,
    "parallel": os.cpu_count() or 1,
    "run_stale_examples": gallery_of_derivations.is_stale(BUILT / "engine", ENGINE),
    "abort_on_example_error": True,
    "only_warn_on_example_error": False,
    "show_signature": False,
    "write_computation_times": False,
    "reset_modules": (),
}
exclude_patterns += ["_gallery_scripts", "gallery/sg_execution_times.rst", "sg_execution_times.rst"]


def _inline(translator, node):
    translator.body.append(element(read(node.astext())))
    raise SkipNode


def _display(translator, node):
    translator.body.append(f'<div class="math">{element(read(node.astext()), BLOCK)}</div>')
    raise SkipNode


def _no_type(_app, what, _name, _thing, _options, lines):
    """Give the words of a property back what napoleon takes for its type: all that stands before a colon."""
    for k, line in enumerate(lines):
        if what == "property" and line.startswith(":type: "):
            lines[0] = f"{lines.pop(k).removeprefix(':type: ')}: {lines[0]}"
            break


def _bars(_app, _what, _name, _thing, _options, lines):
    """Keep reStructuredText from reading the bars of |u| as its own marks."""
    for k, line in enumerate(lines):
        parts = line.split("``")
        parts[::2] = [part.replace("|", "\\|") for part in parts[::2]]
        lines[k] = "``".join(parts)


def _no_machinery(_app, _what, name, thing, skip, _options):
    """Leave out what classes do not offer to users."""
    found = getattr(thing, "fget", None) or getattr(thing, "func", None) or thing
    owner = getattr(found, "__qualname__", "").rpartition(".")[0]
    classes = (symcavity.ConvexProblem, symcavity.System, symcavity.Theory, Solution)
    hidden = {(base.__name__, n) for cls in classes for base in cls.__mro__ for n in cls.MACHINERY}
    return True if (owner, name) in hidden else skip


def _spread(app, env, names):
    """Deal pages that are executed into the parts that processes read first, the longest one first into each.

    Where they stand in the last part, one process executes them and the others have nothing left to do.
    """
    cells = {name: Path(env.doc2path(name)).read_text(encoding="utf-8").count("{code-cell}") for name in names}
    parts = make_chunks(list(names), app.parallel)
    first = parts[: 2 * app.parallel]
    hands = [[] for _ in parts]
    for place, name in enumerate(sorted(filter(cells.get, names), key=lambda name: (-cells[name], name))):
        hands[place % len(first)].append(name)
    others = iter([name for name in names if not cells[name]])
    dealt = [[*hand, *islice(others, max(0, len(part) - len(hand)))] for hand, part in zip(hands, parts, strict=True)]
    names[:] = [*chain.from_iterable(dealt), *others]


def setup(app):
    """Show formulas as MathML, which browsers draw without scripts."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    app.connect("autodoc-process-docstring", _no_type, priority=600)
    app.connect("autodoc-process-docstring", _bars)
    app.connect("env-before-read-docs", _spread)
    app.connect("autodoc-skip-member", _no_machinery)
