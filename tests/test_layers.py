"""Imports point one way, problems have no names in the package, and importing it is light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "symcavity"
ORDER = (  # a layer imports, when it is loaded, only what stands before it
    "errors", "algebra", "shapes", "model", "record", "sites", "method", "writing", "evaluate", "finite", "witness",
)
ALLOWED = {name: set(ORDER[:k]) for k, name in enumerate(ORDER)}
LIGHT = {"sympy", "numpy", "mpmath", "symcavity"}
FILES = sorted(PACKAGE.rglob("*.py"))


def layer(path):
    """The layer of a file: the folder that it lies in."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def target(module):
    return layer(PACKAGE.joinpath(*module.split(".")[1:]).with_suffix(".py"))


def loaded_imports(path):
    """Modules that a file imports when it is loaded: not inside functions, not for type checkers only."""
    found = []

    def walk(node):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, ast.Import):
            found.extend(alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            found.append(node.module)
        for child in ast.iter_child_nodes(node):
            walk(child)

    walk(ast.parse(path.read_text()))
    return found


@pytest.mark.parametrize(
    "path", [f for f in FILES if layer(f) in ALLOWED], ids=lambda f: str(f.relative_to(PACKAGE))
)
def test_layers_point_one_way(path):
    own = layer(path)
    for module in loaded_imports(path):
        if module.startswith("symcavity."):
            assert target(module) == own or target(module) in ALLOWED[own], f"{path.name} imports {module}"


@pytest.mark.parametrize(
    "path", [f for f in FILES if layer(f) in ("algebra", "model", "method", "sites")], ids=lambda f: f.stem
)
def test_rules_import_neither_printers_nor_numerics(path):
    for module in loaded_imports(path):
        if module.startswith("symcavity."):
            assert target(module) not in ("evaluate", "writing", "finite")


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
    problems = [f.stem for f in (ROOT / "derivations").glob("*.py") if f.stem != "__init__"]
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
    for path in FILES:
        layer = path.relative_to(PACKAGE).parts[0]
        if layer in ("cli.py", "commands"):
            continue  # help texts show examples
        tree = ast.parse(path.read_text())
        doc = {
            id(n.value)
            for n in ast.walk(tree)
            if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)
        }
        for node in ast.walk(tree):
            name = getattr(node, "id", getattr(node, "attr", getattr(node, "name", "")))
            text = node.value if isinstance(node, ast.Constant) and id(node) not in doc else name
            for word in words:
                if word == "manifold" and layer in ("__init__.py", "evaluate", "shapes"):
                    continue  # the capacity of a convex set is also offered as a number
                assert not isinstance(text, str) or word not in text, f"{path.name}: {text!r}"
