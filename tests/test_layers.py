"""Imports point one way, problems have no names in the package, and importing it is light."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.house

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "symcavity"
ORDER = (  # a layer imports only what stands before it
    *("errors", "algebra", "shapes", "model", "record", "sites", "method", "writing", "evaluate", "finite"),
    *("study", "witness", "face", "loading", "commands", "cli", "__main__"),
)
TOP = ("loading", "commands", "cli")  # these may import the package itself, with what it offers
LIGHT = {"sympy", "numpy", "mpmath", "symcavity"}
FILES = sorted(PACKAGE.rglob("*.py"))


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in FILES}


def layer(module):
    """The layer of a module: the folder that it lies in; the package itself has none."""
    return module.partition(".")[2].partition(".")[0]


LOADERS = ("import_module", "__import__")


@cache
def parsed(path):
    return ast.parse(path.read_text())


def imports(path):
    """The modules of the package that a file imports anywhere: inside functions and for type checkers too."""
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path.name} imports by a relative name"
            modules = {f"{node.module}.{alias.name}" for alias in node.names} & set(MODULES)
            found |= modules | ({node.module} if len(modules) < len(node.names) else set())
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in LOADERS:
            found |= {arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)}
    return {name for name in found if name.partition(".")[0] == "symcavity"}


@cache
def graph():
    """What each module imports, read where a test asks for it."""
    return {module: imports(path) - {module} for module, path in MODULES.items()}


def upwards(module, graph):
    """The imports of a module that do not point down; within a layer they may go where no circle is."""
    own = layer(module)
    if not own:
        return set()
    below = ORDER[: ORDER.index(own) + 1]
    return {other for other in graph[module] if layer(other) not in below and (layer(other) or own not in TOP)}


def circles(graph):
    """The modules that import themselves by way of others; the package itself is loaded before all of them."""
    out = []
    for start in graph:
        seen, todo = set(), [start]
        while todo:
            for other in graph.get(todo.pop(), ()):
                if other not in seen and layer(other):
                    seen.add(other)
                    todo.append(other)
        if start in seen and layer(start):
            out.append(start)
    return sorted(out)


ROOMS = (  # of evaluate: a file imports nothing from a later one
    ("constants", "tolerances", "numbers", "undefined", "bracket", "watch", "progress", "canvas"),
    *(("averages",), ("closed_map",)),
    ("given", "moving"),
    *(("solutions",), ("solving",), ("certificates",), ("binding",), ("tasks",), ("solve",)),
    ("function", "many_points", "state_evolution"),
)


def test_rooms_of_evaluate_point_down():
    place = {name: k for k, names in enumerate(ROOMS) for name in names}
    inside = [module for module in MODULES if layer(module) == "evaluate" and module.count(".") > 1]
    found = {module: place[module.split(".")[2]] for module in inside}
    assert set(place) == {module.split(".")[2] for module in found}
    assert not [(a, b) for a in found for b in graph()[a] & set(found) if found[b] > found[a]]


def test_imports_point_down():
    assert {layer(module) for module in MODULES} <= {"", *ORDER}
    found = {module: upwards(module, graph()) for module in MODULES}
    assert not {module: others for module, others in found.items() if others}


def test_no_files_import_each_other_in_a_circle():
    assert not circles(graph())


def test_rules_import_neither_printers_nor_numerics():
    for module in MODULES:
        if layer(module) in ("algebra", "model", "method", "sites"):
            assert not {layer(other) for other in graph()[module]} & {"evaluate", "writing", "finite"}


def test_these_tests_see_what_they_forbid(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from symcavity.face import Theory\n"
        "def verb():\n    from symcavity import finite\n    import symcavity.witness.judge\n"
        "    import_module('symcavity.derivations.manifold')\n"
    )
    found = {"symcavity.face", "symcavity.finite", "symcavity.witness.judge", "symcavity.derivations.manifold"}
    assert imports(bad) == found
    assert upwards("symcavity.method.bad", {"symcavity.method.bad": found | {"symcavity"}}) == found | {"symcavity"}
    down = {"symcavity.errors", "symcavity.model.fields", "symcavity.method.kkt"}
    assert not upwards("symcavity.method.good", {"symcavity.method.good": down})
    x, y, z = (f"symcavity.model.{name}" for name in "xyz")
    assert circles({x: {y}, y: {x}, z: {x}}) == [x, y]


def test_private_names_stay_in_their_file():
    for module, path in MODULES.items():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("symcavity"):
                private = [alias.name for alias in node.names if re.match("_[^_]", alias.name)]
                assert not private, f"{module} takes {private} from {node.module}"


def test_the_package_loads_three_libraries_only():
    code = (
        "import sys; before = set(sys.modules); import symcavity; "
        "print(sorted({m.split('.')[0] for m in set(sys.modules) - before}))"
    )
    out = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    loaded = set(ast.literal_eval(out))
    heavy = loaded & {
        "scipy",
        "matplotlib",
        "daqp",
        "clarabel",
        "dask",
        "distributed",
        "pandas",
        "IPython",
        "pytest",
    }
    assert not heavy
    assert loaded >= LIGHT


def test_no_file_of_the_package_knows_a_problem():
    problems = [f.stem for f in (ROOT / "derivations").glob("*.py") if not f.stem.startswith("_")]
    words = [
        *problems,
        "gardner",
        "perceptron",
        "Perceptron",
        "ridge regression",
        "Gardner",
        "soft margin",
        "soft_margin",
    ]
    problem = re.compile("|".join(words))
    for path in FILES:
        if layer(module_of(path)) in ("cli", "commands"):
            continue  # help texts show examples
        tree = parsed(path)
        doc = {
            id(n.value)
            for n in ast.walk(tree)
            if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)
        }
        for node in ast.walk(tree):
            name = getattr(node, "id", getattr(node, "attr", getattr(node, "name", "")))
            text = node.value if isinstance(node, ast.Constant) and id(node) not in doc else name
            assert not isinstance(text, str) or not problem.search(text), f"{path.name}: {text!r}"


def test_every_folder_of_the_package_is_installed():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    folders = {module_of(path) for path in FILES if path.name == "__init__.py"}
    assert folders | {"symcavity.derivations"} == set(listed)
