"""No text reaches SymPy by any public door, and bad input is refused by an error of our own before any work."""

import inspect
import json

import numpy as np
import pytest
from sympy import Eq, I, Rational, Sum, Symbol, pi, sqrt, zoo
from sympy.parsing import sympy_parser

import symcavity
from symcavity import (
    BipartiteSystem,
    ConvexProblem,
    Coupling,
    Datum,
    Derivation,
    Feature,
    N,
    P,
    Quenched,
    SymcavityError,
    ValuesError,
    alpha,
    average,
    check,
    i,
    mu,
    phi,
    response,
)
from symcavity.evaluate.numbers import check_sign
from symcavity.writing.plain_data import Decoder, classes

x, w, e = Coupling("x"), Feature("w"), Quenched("e", mu)
gamma = Symbol("gamma", positive=True)
PROBLEM = ConvexProblem(
    Sum((Sum(x[mu, i] * w[i], (i, 1, N)) - e[mu]) ** 2, (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N))
)
THEORY = PROBLEM.cavity()
LAW = {1: "1/2", -1: "1/2"}
VALUES = {alpha: 2, gamma: 1, e: LAW}


@pytest.fixture(scope="module")
def simulation():
    return PROBLEM.simulate(VALUES, N=12, seeds=2)


@pytest.fixture(scope="module")
def solution():
    return THEORY.solve(VALUES)


@pytest.fixture
def closed(monkeypatch, tmp_path):
    """A payload, and the texts that SymPy was given to execute."""
    heard = []

    def refuse(text, *_args, **_options):
        heard.append(text)
        raise AssertionError(f"SymPy was given {text!r}")

    monkeypatch.setattr(sympy_parser, "parse_expr", refuse)
    mark = tmp_path / "mark"
    yield f"__import__('pathlib').Path({str(mark)!r}).touch()"
    assert not heard
    assert not mark.exists()


def called(function, *args, **options):
    """Call what may refuse; the errors of Python's own that a wrong argument of code deserves are no matter here."""
    try:
        return function(*args, **options)
    except (SymcavityError, TypeError, ValueError, AttributeError, KeyError, NotImplementedError):
        return None


PUBLIC = [getattr(symcavity, name) for name in symcavity.__all__ if callable(getattr(symcavity, name))]


@pytest.mark.parametrize("function", PUBLIC, ids=lambda f: f.__name__)
def test_no_public_name_executes_a_text(function, closed):
    z = Symbol("z", real=True)
    for count in range(1, 4):
        for place in range(count):
            for wrong in (closed, (closed,), [closed], {closed: closed}):
                called(function, *[wrong if k == place else z for k in range(count)])
    known = inspect.signature(function).parameters if not isinstance(function, type) else {}
    for name in known:
        called(function, z, z, **{name: closed})


ARGUMENTS = {
    "values": VALUES, "N": 12, "seeds": 1, "grid": {alpha: [2]}, "observable": average(w[i] ** 2), "parameter": gamma,
    "over": gamma, "target": average(w[i]), "symbol": average(w[i]), "key": average(w[i]), "variable": w, "body": w[i],
    "what": "stability", "across": {alpha: (1, 2)}, "index": 0, "theory": THEORY, "file": "x", "limit": 3,
}  # fmt: skip
SLOW = {"boundary", "optimize", "cavity_experiment", "message_passing", "verify", "to_html", "to_json", "optimum"}


def doors(held):
    """The public methods of an object that take arguments."""
    for name in dir(type(held)):
        verb = getattr(type(held), name)
        own = not name.startswith("_") or name in ("__getitem__", "__contains__", "__call__")
        if own and inspect.isfunction(verb) and len(inspect.signature(verb).parameters) > 1:
            yield name, [p for p in inspect.signature(verb).parameters.values() if p.name != "self"]


@pytest.mark.parametrize("which", ["problem", "system", "theory", "solution", "simulation", "comparison", "derivation"])
def test_no_verb_executes_a_text(which, closed, simulation, solution):
    held = {
        "problem": PROBLEM, "system": PROBLEM.kkt(), "theory": THEORY, "solution": solution, "simulation": simulation,
        "comparison": THEORY.compare(simulation, [average(w[i])]), "derivation": THEORY.derivation,
    }[which]  # fmt: skip
    for name, parameters in doors(held):
        if name in ("simulate", "sweep", "state_evolution", "function"):
            continue  # below, with options that keep them short
        needed = {p.name: ARGUMENTS[p.name] for p in parameters if p.default is p.empty and p.name in ARGUMENTS}
        for p in parameters:
            if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) or (name in SLOW and p.name not in needed):
                continue
            for wrong in (closed, [closed], {closed: 1}, {gamma: closed}):
                called(getattr(held, name), **{**needed, p.name: wrong})


def test_no_value_and_no_column_is_executed(closed, solution):
    short = {"N": 8, "seeds": 1}
    for values in (closed, {closed: 1}, {**VALUES, gamma: closed}, {**VALUES, e: closed}, {**VALUES, e: {closed: 1}}):
        called(PROBLEM.simulate, values, **short)
        called(THEORY.state_evolution, values, 2)
        called(THEORY.solve, values)
        called(THEORY.sweep, {alpha: [1]}, values=values)
        called(THEORY.function, closed, gamma, values=values)
    for columns in (closed, [closed], [[closed]], [(closed,)]):
        called(THEORY.sweep, {alpha: [1]}, values={gamma: 1, e: LAW}, observables=columns)
        called(PROBLEM.sweep, {alpha: [1]}, values={gamma: 1, e: LAW}, observables=columns, **short)
    for grid in (closed, {closed: [1]}, {alpha: closed}, {alpha: [closed]}, [{alpha: closed}]):
        called(THEORY.sweep, grid, values={gamma: 1, e: LAW})
    called(THEORY.function, average(w[i]), closed, values=VALUES)
    called(check, gamma, gamma, points=[{closed: closed}])
    called(solution.stderr, closed)
    evolution = THEORY.state_evolution(VALUES, 1)
    called(evolution.__getitem__, closed)
    called(Derivation.from_json, closed)
    called(BipartiteSystem, [closed], [closed], fixed=[closed], name=closed)


# -- documents -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted({*classes(), "Dummy", "Rational"}))
def test_no_class_of_a_document_takes_what_is_no_node(name, closed):
    """A text, a number, a list, a mapping and a tuple of texts in every argument, beside nodes of several sorts."""
    plain = [
        {"class": "Symbol", "args": [{"value": "a"}]},
        {"class": "Kind", "args": [{"value": t} for t in ("feature", "features", "i", "N")]
         + [{"value": 1}, {"value": False}]},
        {"class": "Tuple", "args": []},
    ]  # fmt: skip
    plain[1]["args"][4] = 3
    plain.insert(1, {"class": "Rational", "args": [{"value": "1/1"}]})
    good = [0, 1, 2]
    wrong = [{"value": closed}, {"value": 7}, [closed], {closed: closed}, {"tuple": [{"value": closed}]}, closed, 1.5]
    base = [*plain[:2], {"class": "Tuple", "args": []}]
    for count in (1, 2, 3, 6):
        for place in range(count):
            for bad in wrong:
                args = [bad if k == place else good[k % 3] for k in range(count)]
                assert read([*base, {"class": name, "args": args}]) in ("", "cannot be read")


def read(nodes):
    """Whether a table of nodes is read, or what is said of it; any other error is raised."""
    try:
        Decoder(nodes)
    except ValuesError as error:
        return "cannot be read" if "cannot be read" in str(error) else str(error)
    return ""


def test_no_part_of_a_kind_or_a_coupling_is_a_text(closed):
    document = json.loads(THEORY.derivation.to_json(verify=False))
    seen = set()
    for node in document["nodes"]:
        if node["class"] in ("Kind", "Coupling", "Quenched", "Variable", "ComponentSymbol", "CavitySymbol"):
            seen.add(node["class"])
            for place, there in enumerate(node["args"]):
                if isinstance(there, dict) and isinstance(there.get("value"), str):
                    continue  # a name
                for bad in ({"value": closed}, {"tuple": [{"value": closed}]}):
                    node["args"][place] = bad
                    with pytest.raises(ValuesError):
                        Derivation.from_json(json.dumps(document))
                node["args"][place] = there
    assert {"Kind", "Coupling", "Quenched", "Variable"} <= seen


def number(text):
    return {"class": "Rational", "args": [{"value": text}]}


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([number("10/1"), {"class": "Pow", "args": [0, 0]}, {"class": "Pow", "args": [0, 1]},
          {"class": "Pow", "args": [0, 2]}], "digits"),
        ([number("999999999/1"), {"class": "Pow", "args": [0, 0]}], "digits"),
        ([number("99999/1"), {"class": "gamma", "args": [0]}], "digits"),
        ([number("1/0")], "fraction"),
        ([number("9" * 5000 + "/1")], "fraction"),
        ([{"class": "Symbol", "args": [{"value": "a"}]}, number("1001/1"),
          {"class": "Pow", "args": [0, 1]}], "exponent"),
        ([{"class": "Symbol", "args": [{"value": "a"}]}]
         + [{"class": "exp", "args": [k]} for k in range(200)], "levels"),
        ([{"class": "Symbol", "args": [{"value": "a"}]}]
         + [{"class": "Max", "args": [k, k, k]} for k in range(40)], "nodes"),
        ([{"class": "Symbol", "args": [{"value": t}]} for t in "abcdefgh"] + [{"class": "Add", "args": [*range(8)]},
          number("60/1"), {"class": "Pow", "args": [8, 9]}], "terms"),
        ([{"class": "Symbol", "args": [{"value": "a\x00"}]}], "text"),
        ([{"class": "TexSymbol", "args": [{"value": "a"}, {"value": "\\input{secret}"}]}], "TeX"),
        ([{"class": "Symbol", "args": [{"value": "a"}], "assumptions": {"name": True}}], "assumption"),
    ],
)  # fmt: skip
def test_documents_that_would_hang_or_break_the_reader_are_refused(nodes, said):
    with pytest.raises(ValuesError, match=said):
        Decoder(nodes)


@pytest.mark.parametrize("key", ["title", "method", "declaration", "parameters", "steps", "results", "nodes"])
@pytest.mark.parametrize("wrong", [None, 1, "a\x1b[2J", [], {}, [1], [[1]], {"a": 1}, "__import__('os')"])
@pytest.mark.usefixtures("closed")
def test_a_document_with_a_wrong_part_is_refused(key, wrong):
    document = json.loads(THEORY.derivation.to_json(verify=False))
    document[key] = wrong
    if (key, wrong) in (("title", "__import__('os')"), ("parameters", []), ("steps", []), ("results", [])):
        return  # a title like others, and records with nothing in them
    with pytest.raises(ValuesError):
        Derivation.from_json(json.dumps(document))


# -- bad input -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "guess",
    [3, "q_w", [1], {"q_x": 1}, {gamma: "one"}, {"q_w": "one"}, {"q_w": float("nan")}, {"q_w": None}, {7: 1}],
)
def test_a_guess_is_numbers_of_unknowns(guess):
    with pytest.raises(ValuesError, match="guess"):
        THEORY.solve(VALUES, guess=guess)


def test_a_guess_may_be_a_solution_or_name_unknowns(solution):
    near = THEORY.solve(VALUES | {gamma: "1.01"}, guess=solution)
    named = THEORY.solve(VALUES | {gamma: "1.01"}, guess={str(s): float(v) for s, v in solution.values.items()})
    assert near["q_w"] == pytest.approx(named["q_w"], rel=1e-12)


@pytest.mark.parametrize(
    "wrong",
    [*({"N": n} for n in (float("nan"), float("inf"), 1j, "abc", "20", b"20", {20: 1}, True, 2.5, [20, "20"])),
     *({"seeds": s} for s in ("12", b"12", [1.5], ["1"], True, {1: 2}, float("nan"), 1j, [True]))],
)  # fmt: skip
def test_sizes_and_seeds_are_whole_numbers(wrong):
    with pytest.raises(ValuesError, match=next(iter(wrong))):
        PROBLEM.simulate(VALUES, **{"N": 12, "seeds": 1} | wrong)


WRONG_VALUES = {
    "an array": np.array([1.0, 2.0]),
    "a list": [1],
    "a load below double": {**VALUES, alpha: 5e-324},
    "a load beyond double": {**VALUES, alpha: 1e305},
    "a tiny weight": {**VALUES, e: {1: "1e-5000", -1: 1}},
    "a tiny number": {**VALUES, gamma: Rational(1, 10**5001)},
    "a huge number": {**VALUES, gamma: 10**5000},
    "bytes": {**VALUES, gamma: b"1"},
    "bytes as a law": {**VALUES, e: b"1"},
    "a masked array": {**VALUES, e: np.ma.array([1.0] * 24, mask=[True] + 23 * [False])},
    "ragged": {**VALUES, e: [1, [2, 3]]},
    "two dimensions": {**VALUES, e: np.ones((2, 12))},
    "twice by name": {**VALUES, "gamma": 5},
    "twice by index": {**VALUES, e[mu]: LAW},
    "a foreign key": {**VALUES, 7: 7},
    "a set": {**VALUES, e: {1, 2}},
    "a truth": {**VALUES, gamma: True},
    "digits apart": {**VALUES, gamma: "1 2"},
    "zero over zero": {**VALUES, gamma: "0/0"},
    "several": {**VALUES, gamma: [1, 2]},
}


@pytest.mark.parametrize("name", WRONG_VALUES)
def test_the_same_values_are_refused_in_theory_and_in_instances(name):
    said = []
    for act in (lambda v: PROBLEM.simulate(v, N=12, seeds=1), THEORY.solve):
        with pytest.raises(ValuesError) as caught:
            act(WRONG_VALUES[name])
        said.append(caught.value.found)
    assert name == "a foreign key" or said[0] == said[1]


@pytest.mark.parametrize("value", [1, {1: 1}, {"1/2": 1}])
def test_a_parameter_whose_law_is_declared_takes_no_value(value):
    """A theory that has averaged over the declared law cannot use another one."""
    y = Quenched("y", mu, law={1: Rational(1, 2), 2: Rational(1, 2)})
    x, w = Coupling("x"), Feature("w")
    loss = Sum((y[mu] - Sum(x[mu, i] * w[i], (i, 1, N))) ** 2, (mu, 1, P))
    declared = ConvexProblem(loss + Sum(w[i] ** 2, (i, 1, N)))
    for act in (lambda v: declared.simulate(v, N=12, seeds=1), declared.cavity().solve):
        with pytest.raises(ValuesError, match="law by its declaration"):
            act({alpha: 2, y: value})
    with pytest.raises(ValuesError) as caught:
        declared.cavity().solve({})
    assert caught.value.supported == "values for alpha"


def test_instances_refuse_what_a_double_cannot_hold_and_theories_take_it():
    """A theory may be asked for 500 digits; an instance is computed in doubles."""
    tiny = {**VALUES, gamma: Rational(1, 10**400)}
    with pytest.raises(ValuesError, match="1e-300 to 1e300"):
        PROBLEM.simulate(tiny, N=12, seeds=1)
    assert THEORY.solve(tiny)["q_w"] > 0


def test_values_by_name_are_those_by_symbol(solution, simulation):
    named = {"alpha": 2, "gamma": "1", "e": LAW}
    assert THEORY.solve(named).values == solution.values
    assert np.array_equal(PROBLEM.simulate(named, N=12, seeds=2).arrays(w), simulation.arrays(w))
    assert THEORY.solve({"P/N": 2, "gamma": 1, "e": LAW})["q_w"] == solution["q_w"]


WRONG_OBSERVABLES = [
    *({}, [], None, object(), 1j, I * average(w[i]), b"1", zoo, (1, 2), w),
    *("w", "", "average(", "q_x", "1j", "()", "x" * 500),
]


@pytest.mark.parametrize("wrong", WRONG_OBSERVABLES)
def test_an_observable_is_one_real_expression(wrong, simulation, solution):
    for held in (simulation, solution):
        with pytest.raises(SymcavityError):
            held[wrong]


def test_a_quenched_parameter_has_no_response():
    with pytest.raises(SymcavityError, match="not a variable"):
        response(e[mu])


TEXTS = ["average(w[i]**2)", "response(w)", "average(w[i] > 0)", "2*average(w[i]**2)", "alpha", "P/N"]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_read_alike_everywhere(text, simulation, solution):
    from symcavity.model.typed import read_observable

    known = read_observable(text, PROBLEM.kkt())
    assert solution[text] == solution[known]
    assert simulation[text].mean == simulation[known].mean
    (row,) = THEORY.compare(simulation, [text])
    assert row.observable == known


def test_names_of_order_parameters_are_read_where_a_theory_is_known(simulation):
    (row,) = THEORY.compare(simulation, ["q_w"])
    assert row.observable == average(w[i] ** 2)
    held = Eq(average(w[i] ** 2), gamma)
    hard = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) / 2, [Sum(x[mu, i] * w[i], (i, 1, N)) >= 1], [held])
    assert hard.cavity().closed_form("alpha") == hard.cavity().closed_form(alpha) == 1 / phi(2, 1 / sqrt(gamma))


@pytest.mark.parametrize("name", ["alpha", "gamma", gamma, alpha])
def test_a_parameter_has_no_closed_form(name):
    with pytest.raises(ValuesError, match="is a parameter of this theory"):
        THEORY.closed_form(name)


@pytest.mark.parametrize(
    ("told", "value"),
    [({"even": True}, 3), ({"odd": True}, 4), ({"prime": True}, 4), ({"irrational": True}, 2),
     ({"rational": True}, sqrt(2)), ({"nonzero": True}, 0), ({"integer": True}, Rational(1, 2)),
     ({"integer": True}, 0.5), ({"composite": True}, 7),
     ({"algebraic": True}, pi), ({"even": True}, 3.0), ({"positive": True}, -1), ({"negative": True}, 1)],
)  # fmt: skip
def test_a_value_is_what_its_symbol_was_declared_to_be(told, value):
    from symcavity.evaluate.numbers import exact_value

    with pytest.raises(ValuesError, match="declared"):
        check_sign(Symbol("s", **told), exact_value(value, "s", 15))


def test_edges_of_signs_and_other_declarations_pass():
    for told, value in (("positive", 0), ("real", sqrt(2)), ("even", 4), ("irrational", 0.5)):
        check_sign(Symbol("s", **{told: True}), value)
    with pytest.raises(ValuesError, match="positive"):
        check_sign(Symbol("s", positive=True), 0, edges=False)


def test_phi_takes_no_text(closed):
    for arguments in ((closed, 1), (2, closed)):
        with pytest.raises(SymcavityError):
            phi(*arguments)


def test_data_have_texts_of_their_own():
    xi = Datum("xi")
    soft = ConvexProblem(
        Sum(w[i] ** 2, (i, 1, N)) / 2 + Sum(xi[mu], (mu, 1, P)),
        [Sum(x[mu, i] * w[i], (i, 1, N)) >= 1 - xi[mu], xi[mu] >= 0],
    )
    found = soft.cavity().solve({alpha: 1})
    assert found["average(xi[mu])"] == found[average(xi[mu])]


@pytest.mark.parametrize("name", ["_w", "w_", "a__b"])
def test_a_name_with_underscores_at_its_ends_is_printed(name):
    v = Feature(name)
    derivation = ConvexProblem(
        Sum(v[i] ** 2, (i, 1, N)) + Sum((Sum(x[mu, i] * v[i], (i, 1, N)) - 1) ** 2, (mu, 1, P))
    ).cavity().derivation
    assert "\\mathrm{" + name.replace("_", "\\_") + "}" in derivation.to_latex()
    assert derivation.to_html()
    assert name in derivation.to_text()
