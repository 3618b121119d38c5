"""Scripts for the gallery of the site: one for each installed derivation, written from its file alone."""

import ast
import hashlib
import importlib
import inspect
import re
from functools import cache
from pathlib import Path

from symcavity import ConvexProblem
from symcavity.evaluate.canvas import Panel, Picture
from symcavity.finite.warm import discrete
from symcavity.loading import installed, system_of
from symcavity.model.kinds import N, alpha
from symcavity.model.quantities import Quenched, site_quantities

# whose steps overshoot where they are whole, and why
DAMPED = {
    "gaussian_clusters": "the overlap with the clusters and its multiplier amplify each other threefold in each step",
    "group_lasso": "weights without a ridge of their own have no bound before the first messages of the data",
    "one_sided_diet": "the interactions are not those of a gradient, and the averages of both sides chase each other",
    "supplied_resources": "the averages of consumers and of resources react to each other too strongly",
}
# at whose vertices changes neither grow nor die out
MARGINAL = {
    *("basis_pursuit", "expected_shortfall", "least_deviations", "quantile_regression", "random_linear_program"),
    "zero_sum",
}

# whose averages over several fields, or over a law without a closed form, take seconds for each load: they are held
# against instances at one load
DEAR = {
    *("correlated_manifolds", "expected_shortfall", "flipped_labels", "group_lasso", "logistic_intercept"),
    *("logistic_teacher", "soft_manifold", "softmax", "sparse_means", "supplied_resources", "binary_perceptron"),
    *("bayes_perceptron", "clusters_hinge", "consumer_resource", "correlated_points", "logistic_existence"),
}

HEADER = """Gallery
=======

Every derivation that comes with the package: its physics, its declaration, the equations that the engine finds, and the
theory against finite instances of the same declaration.
"""


TESTS = Path(__file__).parent.parent / "tests" / "gallery"


def fingerprint():
    """Return a mark of the sources of the package: what was executed with other sources is out of date."""
    found = hashlib.sha256()
    for module in ("symcavity", "symcavity.derivations"):
        for path in sorted(Path(importlib.import_module(module).__file__).parent.rglob("*.py")):
            found.update(path.read_bytes())
    return found.hexdigest()[:12]


def is_stale(file, mark):
    """Whether the last build was made with other sources; remembers the present ones."""
    stale = not file.exists() or file.read_text(encoding="utf-8") != mark
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(mark, encoding="utf-8")
    return stale


def write(folder):
    """Write the scripts; what did not change keeps its file, so that it is not run again."""
    folder.mkdir(exist_ok=True)
    wanted = {f"plot_{name}.py": script(name) for name in installed()}
    wanted["GALLERY_HEADER.rst"] = HEADER
    for path in folder.iterdir():
        if path.is_file() and path.name not in wanted:
            path.unlink()
    for name, content in wanted.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != content:
            path.write_text(content, encoding="utf-8")


def script(name):
    """Return the script about one derivation."""
    module = importlib.import_module(f"symcavity.derivations.{name}")
    title, _, rest = inspect.getdoc(module).partition("\n")
    heading = module.problem.name or name
    body = re.sub(r'^""".*?"""\n', "", inspect.getsource(module), count=1, flags=re.DOTALL).strip()
    body = re.sub(r'    source=\{.*?\n    \},\n', "", body, flags=re.DOTALL)
    said = f"``symcavity derive {name}`` prints the derivation."
    parts = [
        f'r"""\n{heading}\n{"=" * len(heading)}\n\n{_literal(title)}\n\n{_literal(rest)}\n\n{said}\n"""\n',
        f"# %%\n# **The declaration**\n\n{body}\n",
        "# %%\n# **The equations**: the closed system for the order parameters\n\ntheory = problem.cavity()\ntheory\n",
    ]
    values, shown = getattr(module, "values", None), getattr(module, "shown", None)
    moves, warm = hasattr(module, "until"), _weights(module.problem)
    if moves:
        parts.append(_moved(hasattr(module, "step")))
    elif values is not None and shown and getattr(module, "instances", True):
        along = alpha in values and name not in DEAR
        parts.append(_at_temperature(along, warm) if warm else _confronted(along, _features(values)))
    if held := published(name):
        said = "".join(f"# * {_literal(' '.join(words.split()))}\n" for words in held)
        parts.append(f"# %%\n# **Known numbers**, with which the tests compare this theory\n#\n{said}")
    if moves or warm:  # no messages of one state are passed there
        return "\n".join(parts)
    if name in MARGINAL:
        parts.append(_unsettled(_features(values, 100)))
    elif values is not None and shown:
        parts.append(_passed(_features(values, 100), DAMPED.get(name), 4 if name in DEAR else 15))
        if alpha not in values:  # a curve says more on the wall than a table of deviations
            parts.append("# sphinx_gallery_thumbnail_number = -1\n")
    return "\n".join(parts)


def _weights(declared):
    """Return the weights of states at a temperature; a convex minimum, whose conditions take longer, has none."""
    return {} if isinstance(declared, ConvexProblem) else system_of(declared).weights


def published(name):
    """Return what the tests of published numbers say that they hold a derivation to."""
    found = []
    for said, words in _known_numbers():
        found += [said] if name in words else []
    return found


@cache
def _known_numbers():
    """Return what each test of a known number says, and the texts and numbers in it."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted(TESTS.glob("test_*numbers.py"))]
    tests = [test for tree in trees for test in tree.body if isinstance(test, ast.FunctionDef)]
    return [
        (said, {node.value for node in ast.walk(test) if isinstance(node, ast.Constant)})
        for test in tests if test.name.startswith("test_") and (said := ast.get_docstring(test))
    ]


def _literal(text):
    """Keep reStructuredText from reading the words of a docstring as its own marks."""
    text = re.sub(r"(?m)^([A-Z]\. )", r"\\\1", text)  # an initial is not a number of a list
    return re.sub(r"(?<!`)([*_|])(?=\S)(?![^`]*``)", r"\\\1", text) if "``" not in text else text


def _passed(size, why=None, steps=15):
    """Return the part about message passing: each step against the state evolution, the pace against the stability."""
    if why:
        return f'''# %%
# **Message passing** on instances of the same declaration. Whole steps overshoot here, although the stability of the
# theory is below one: {why}. Half steps (``damping=0.5``)
# settle at the solution of each instance. On the left an observable after each step, and the solution of the theory,
# from which instances differ by a finite-size error; on the right the change of the messages in each step, and the
# pace of damped steps in theory.

from symcavity import N

given = {{key: value for key, value in values.items() if key != N}}
run = problem.message_passing(given, N={size}, seeds=2, steps={2 * (steps + 2)}, damping=0.5)
settling = run.figure(shown[0], theory)
run
'''
    return f'''# %%
# **Message passing** on instances of the same declaration. On the left an observable after each step, and the state
# evolution, which iterates the closed equations; on the right the change of the messages in each step, and
# the pace that the stability of the theory predicts: steps are slower only where the observables on the left are.

from symcavity import N

given = {{key: value for key, value in values.items() if key != N}}
run = problem.message_passing(given, N={size}, seeds=2, steps={steps})
settling = run.figure(shown[0], theory)
run
'''


def _unsettled(size):
    """Return the part about messages that do not settle."""
    return f'''# %%
# **Message passing** does not settle here. The stability of the theory is one: the minimum lies at a vertex, where as
# many terms bend as there are directions, and a small change of the fields neither grows nor dies out in a step.

from symcavity import N, NotConverged

given = {{key: value for key, value in values.items() if key != N}}
print(f"stability {{float(theory.solve(values).stability):.6f}}")
try:
    run = problem.message_passing(given, N={size}, seeds=2, steps=30)
    print(f"after 30 steps they still move by {{max(moves[-1] for moves in run.changes):.1e}}")
except NotConverged as error:
    print(error)
'''


def _moved(flowing):
    """Return the part in which a run forward in time is held against instances."""
    span = "until=until, step=step" if flowing else "until=until"
    return f'''# %%
# **Theory against instances** of the same declaration, in time: lines are the theory, points instances

from symcavity.evaluate.canvas import panel

run = theory.evolve(values, paths=2000, seed=1, {span})
simulation = problem.simulate(values, N=100, seeds=4, {span})
picture = run.plot(*shown, sim=simulation, ax=panel((5.0, 3.4)))
run.compare(simulation, shown)
'''


def _features(values, enough=60):
    """Return how many features an instance has: what the values say, or what serves for a picture."""
    arrays = [len(v) for k, v in values.items() if isinstance(k, Quenched) and isinstance(v, list | tuple)]
    return values[N] if N in values else arrays[0] if arrays else enough


def _confronted(along, size):
    """Return the part in which theory and instances are held against each other: along the load where it is given."""
    if along:
        return f'''# %%
# **Theory against instances** of the same declaration, along the load

from sympy import Rational

from symcavity import alpha

others = {{key: value for key, value in values.items() if key != alpha}}
loads = [values[alpha] * Rational(k, 5) for k in range(3, 8)]
curve = theory.sweep({{alpha: loads}}, values=others, observables=shown)
points = problem.sweep(
    {{alpha: [values[alpha], loads[-1]]}}, N={size}, seeds=5, values=others, observables=shown
)
picture = (curve + points).plot(alpha, shown[0])
'''
    return f'''# %%
# **Theory against instances** of the same declaration

from symcavity import N

given = {{key: value for key, value in values.items() if key != N}}
simulation = problem.simulate(given, N={size}, seeds=5)
comparison = theory.compare(simulation, shown)
picture = comparison.plot()
comparison
'''


def _at_temperature(along, weights):
    """Return the part about a Gibbs measure: its theory along the load, and small instances.

    Where all states are discrete, all configurations of a small instance are summed, else they are sampled.
    """
    states = [q for weight in weights.values() if not weight.is_field for q in site_quantities(weight.state)]
    few = len(discrete(states)) == len(states)
    size = "N=16, seeds=8" if few else "N=30, seeds=3, sweeps=100"
    curve = """
from sympy import Rational

from symcavity import alpha

others = {key: value for key, value in values.items() if key != alpha}
loads = [values[alpha] * Rational(k, 5) for k in range(3, 8)]
picture = theory.sweep({alpha: loads}, values=others, observables=shown).plot(alpha, shown[0])
"""
    first = f"# %%\n# **Along the load**, in theory\n{curve}\n" if along else ""
    return f'''{first}# %%
# **Theory against instances** of the same declaration: small ones, whose measures are summed or sampled

simulation = problem.simulate(values, {size})
comparison = theory.compare(simulation, shown)
deviations = comparison.plot()
comparison
'''


def scraper(_block, block_vars, gallery_conf):
    """Save the picture that a block made, for sphinx-gallery."""
    from sphinx_gallery.scrapers import figure_rst

    names = []
    for value in block_vars["example_globals"].values():
        figure = value.figure if isinstance(value, Panel) else value
        if isinstance(figure, Picture) and not getattr(figure, "in_gallery", False):
            path = next(block_vars["image_path_iterator"])
            figure.savefig(path, dpi=150)
            figure.in_gallery = True
            names.append(path)
    return figure_rst(names, gallery_conf["src_dir"])


__all__ = ["scraper", "write"]
