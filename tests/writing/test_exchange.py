"""Derivations as JSON: round trips, the schema, what is refused, and claims that were falsified on the way."""

import json
import pickle
import subprocess
import sys

import jsonschema
import pytest
from sympy import Derivative, Dummy, Eq, Rational, Sum, Symbol, exp, log, symbols, tanh
from sympy.stats import Gamma, Normal, Poisson

from symcavity import (
    Complementary,
    ConvexProblem,
    Coupling,
    Derivation,
    Feature,
    Global,
    N,
    Noise,
    P,
    Quenched,
    System,
    Time,
    ValuesError,
    Variable,
    average,
    i,
    mu,
)
from symcavity.cli import main
from symcavity.derivations import gardner, recalled_memory, spin_glass
from symcavity.writing.exchange import schema
from symcavity.writing.plain_data import Decoder, Encoder

x, w, gamma = Coupling("x"), Feature("w"), Symbol("gamma", positive=True)
h = Sum(x[mu, i] * w[i], (i, 1, N))


def species():
    n, j, g = Feature("n"), symbols("j", integer=True), Symbol("g", real=True)
    J = Coupling("J", between=(i, i), mean=gamma / N, variance=1 / N, reciprocity=g)
    return System([], [Complementary(n[i], n[i] - 1 + Sum(J[i, j] * n[j], (j, 1, N)))])


def learning():
    t = Quenched("t", i)
    u = Sum(x[mu, i] * t[i], (i, 1, N))
    y = Quenched("y", mu, law={1: 1 / (1 + exp(-u)), -1: 1 / (1 + exp(u))}, given=u)
    return ConvexProblem(Sum(log(1 + exp(-y[mu] * h)), (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)


def drawn():
    e, s = Quenched("e", mu, law=Normal("n", 0, gamma)), Quenched("s", mu, law=Gamma("s", 2, 1), positive=True)
    k = Quenched("k", i, law=Poisson("k", 2))
    return ConvexProblem(Sum(s[mu] * (h - e[mu]) ** 2, (mu, 1, P)) + Sum(w[i] ** 2 + k[i] * w[i], (i, 1, N)))


t, s = Time("t"), Time("s")


def noisy():
    """In steps: a delay, noise, a mask that is drawn anew, and a mean that all sites hear."""
    n, k, g = Variable("n", i, over=t), Quenched("k", i, over=t, law={0: Rational(1, 2), 1: Rational(1, 2)}), gamma
    J = Coupling("J", between=(i, i), variance=1 / N, reciprocity=Symbol("r", real=True))
    xi, a, b, j = Noise("xi", i, over=t, variance=g), Quenched("a", i), Global("b", over=t), symbols("j", integer=True)
    heard = Sum(J[i, j] * tanh(n[j, t - 1]), (j, 1, N))
    law = Eq(n[i, t + 1], n[i, t] / 2 + k[i, t] * heard + xi[i, t] + b[t])
    shared = Eq(b[t + 1], average(n[i, t]) / 2)
    return System([law, shared], initial=[Eq(n[i, 0], a[i]), Eq(n[i, 1], 0), Eq(b[0], 0)])


def flowing():
    n, j = Variable("n", i, over=t), symbols("j", integer=True)
    J = Coupling("J", between=(i, i), variance=gamma / N)
    law = Eq(Derivative(n[i, t], t), -n[i, t] + Sum(J[i, j] * tanh(n[j, t]), (j, 1, N)))
    return System([law], initial=[Eq(n[i, 0], 1)])


def delayed():
    """Two fields of one site, which are told apart by numbers."""
    n, j, a = Variable("n", i, over=t), symbols("j", integer=True), Quenched("a", i)
    J, K = (Coupling(name, between=(i, i), variance=gamma / N) for name in "JK")
    law = Sum(J[i, j] * tanh(n[j, t]), (j, 1, N)) + Sum(K[i, j] * n[j, t - 1], (j, 1, N))
    return System([Eq(n[i, t + 1], law)], initial=[Eq(n[i, 0], a[i]), Eq(n[i, 1], a[i])])


def descended():
    a, e = Quenched("a", i), Quenched("e", mu)
    problem = ConvexProblem(Sum((h - e[mu]) ** 2, (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)), name="A name")
    return problem.descent(rate=Rational(1, 8), momentum=gamma, batch=Rational(1, 2), initial=[Eq(w[i], a[i])])


def flow():
    return ConvexProblem(Sum((1 - h) ** 2, (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N))).flow()


MOVING = [noisy(), delayed(), flowing(), descended(), flow()]


@pytest.mark.parametrize("problem", [species(), learning(), drawn(), *MOVING])
def test_what_is_read_is_what_was_written(problem):
    derivation = problem.cavity().derivation
    text = derivation.to_json(verify=False)
    jsonschema.validate(json.loads(text), schema())
    found = Derivation.from_json(text)
    bound = any(c.difference.atoms(Dummy) for s in derivation for c in s.claims)
    if not bound:  # bound symbols of another derivation are others
        assert found == derivation
    assert [str(c) for s in found for c in s.claims] == [str(c) for s in derivation for c in s.claims]
    assert found.to_json(verify=False) == text
    assert found.to_text() == derivation.to_text()


@pytest.mark.parametrize("made", ["itself", "copies", "gibbs", "flow"])
def test_what_a_declaration_says_goes_with_it_and_is_read_back(made):
    said = {"says": "Weights are 100 % of α & <w>_i.", "cite": "A. Author, J. 1, 2 (1990)", "name": "Ridge"}
    problem = ConvexProblem(Sum((1 - h) ** 2, (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)), **said)
    other = {"itself": problem.kkt, "copies": lambda: problem.copies(2), "gibbs": lambda: problem.gibbs(2),
             "flow": problem.flow}[made]()  # fmt: skip
    assert (other.says, other.cite) == (said["says"], said["cite"])
    text = other.cavity().derivation.to_json(verify=False)
    jsonschema.validate(json.loads(text), schema())
    found = Derivation.from_json(text)
    assert found.says == said["says"]
    assert found.to_text().splitlines()[3].startswith(said["says"])
    document = json.loads(text)
    document["declaration"]["says"] = "\\input{/etc/passwd}"
    with pytest.raises(ValuesError, match="what the declaration says holds a command of TeX"):
        Derivation.from_json(document)


def test_records_of_declarations_that_say_nothing_are_read():
    document = json.loads(gardner.problem.cavity().derivation.to_json(verify=False))
    del document["declaration"]["says"]
    jsonschema.validate(document, schema())
    assert Derivation.from_json(document).says == ""


def test_the_schema_is_a_schema_and_refuses():
    jsonschema.Draft202012Validator.check_schema(schema())
    document = json.loads(gardner.problem.cavity().derivation.to_json(verify=False))
    for change in ({"version": 2}, {"method": "magic"}, {"more": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(document | change, schema())


def test_what_is_read_verifies_and_a_falsified_claim_fails():
    text = gardner.problem.naive().derivation.to_json()
    document = json.loads(text)
    jsonschema.validate(document, schema())
    assert all(v["ok"] for step in document["steps"] for v in step["verdicts"])
    assert Derivation.from_json(text).verify()
    step = next(s for s in document["steps"] if s["key"] == "closure.q_lambda")
    place = step["claims"][0]["rhs"]
    document["nodes"].append({"class": "Rational", "args": [{"value": "2/1"}]})
    document["nodes"].append({"class": "Mul", "args": [len(document["nodes"]) - 1, place]})
    step["claims"][0]["rhs"] = len(document["nodes"]) - 1
    failed = [row.step.key for row in Derivation.from_json(json.dumps(document)).verify().failed]
    assert failed == ["closure.q_lambda"]


def test_what_moves_verifies_when_it_is_read_and_a_falsified_kernel_fails():
    """The covariance of the cavity field of the memory is that of what others send; twice of it is not."""
    document = json.loads(recalled_memory.problem.cavity().derivation.to_json(verify=False))
    known = {"closed_system", "datum.field_statistics"}  # the first looks at other steps of the record
    assert all(v.ok for key in known for v in Derivation.from_json(document)[key].verdicts(15))
    step = next(s for s in document["steps"] if s["key"] == "datum.field_statistics")
    place = step["claims"][-1]["rhs"]
    document["nodes"].append({"class": "Rational", "args": [{"value": "2/1"}]})
    document["nodes"].append({"class": "Mul", "args": [len(document["nodes"]) - 1, place]})
    step["claims"][-1]["rhs"] = len(document["nodes"]) - 1
    assert not all(v.ok for v in Derivation.from_json(document)["datum.field_statistics"].verdicts(15))


def test_all_steps_of_a_measure_verify_when_they_are_read():
    """Witnesses of the free energy and of stability look at other steps of the record."""
    found = Derivation.from_json(spin_glass.problem.cavity().derivation.to_json(verify=False)).verify(15)
    assert {"free_energy", "stability"} <= {row.step.rule for row in found}
    assert not found.failed
    assert not found.unchecked


def test_two_sites_over_time_are_read_back():
    derivation = flowing().cavity().pair(over=[t]).derivation
    text = derivation.to_json(verify=False)
    jsonschema.validate(json.loads(text), schema())
    found = Derivation.from_json(text)
    assert found.to_json(verify=False) == text
    assert [step.key for step in found] == [step.key for step in derivation]
    assert found["pair.close"].verdicts(15)[0].ok


@pytest.mark.parametrize(
    "args",
    [
        ("SiteQuantity", [3, 0, 4]),  # a time that is no whole step from the time
        ("SiteQuantity", [3, 0]),
        ("Variable", [{"value": "x"}, 5, 1, 0]),
        ("Noise", [{"value": "x"}, 6, 1, 0, 2]),  # what moves has no components
        ("Noise", [{"value": "x"}, 5, 1, 0, 0]),
        ("SharedState", [{"value": "x"}, 5, 0]),
        ("Rate", [2, 0]),
        ("Element", [5]),
        ("MovingParameter", [{"value": "C"}, {"tuple": [{"value": "t"}]}]),
        ("Time", [{"value": "N"}]),
        ("Time", [{"value": "t - t"}]),
    ],
)
def test_what_moves_is_read_at_whole_steps_of_a_time(args):
    """Each of these nodes is refused; the family, the quantity and the time that they hold are read."""
    nodes = [
        {"class": "Symbol", "args": [{"value": "a"}]},
        {"class": "Kind", "args": [*({"value": k} for k in ("feature", "features", "i", "N")), 0, {"value": False}]},
        {"class": "Time", "args": [{"value": "t"}]},
        {"class": "Variable", "args": [{"value": "x"}, 5, 1, 2]},
        {"class": "Mul", "args": [2, 2]},
        {"class": "Tuple", "args": []},
        {"class": "Tuple", "args": [0, 0, 0]},
        {"class": "SiteQuantity", "args": [3, 0, 2]},
    ]
    order = [0, 1, 2, 5, 3, 4, 6, 7]
    place = {old: new for new, old in enumerate(order)}

    def moved(node):
        return node | {"args": [place[k] if isinstance(k, int) else k for k in node["args"]]}

    table = [moved(nodes[k]) for k in order]
    assert Decoder(table)[7].time == t
    with pytest.raises(ValuesError, match="node 8"):
        Decoder([*table, moved({"class": args[0], "args": args[1]})])


def test_another_process_reads_it(tmp_path):
    """Nothing hangs on the identity of symbols in this process, or on its hash seed."""
    file = tmp_path / "g.json"
    problem = ConvexProblem(Sum(log(1 + exp(-h)), (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)
    file.write_text(problem.cavity().derivation.to_json(verify=False), encoding="utf-8")
    code = (
        "import sys; from pathlib import Path; from symcavity import Derivation; "
        "d = Derivation.from_json(Path(sys.argv[1]).read_text(encoding='utf-8')); "
        "rows = [r for s in d if s.rule in ('insert', 'stationarity') for r in s.verdicts()]; "
        "print(len(rows) == 3 and all(r.ok for r in rows), "
        "d.to_json(verify=False) == Path(sys.argv[1]).read_text(encoding='utf-8'))"
    )
    done = subprocess.run(  # noqa: S603 - this file's own code
        [sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "True"]


MARK = "__import__('pathlib').Path('{}').touch()"


@pytest.mark.parametrize(
    "node",
    [
        {"class": "exp", "args": [{"value": MARK}]},
        {"class": "Average", "args": [{"value": MARK}]},
        {"class": "SiteQuantity", "args": [{"value": MARK}]},
        {"class": "Tuple", "args": [{"tuple": [{"value": MARK}]}]},
        {"class": "ComponentSymbol", "args": [{"value": "T"}, {"value": None}, {"tuple": [{"value": MARK}]}]},
        {"class": "OrderParameter", "args": [{"value": "q"}], "assumptions": {"real": "yes"}},
        {"class": "lambdify", "args": [{"value": MARK}]},
        {"class": "NormalDistribution", "args": [{"value": MARK}, {"value": 1}]},
        {"class": "RandomSymbol", "args": [{"value": MARK}, {"value": None}]},
        {"class": "Rational", "args": [{"value": MARK}]},
        {"class": "Add", "args": [7]},
        {"class": "Add", "args": [-1]},
        {"class": "Add"},
        "Add",
    ],
)
def test_nothing_that_is_read_is_evaluated(node, tmp_path):
    mark = tmp_path / "mark"
    text = json.dumps([node]).replace("{}", str(mark))
    with pytest.raises(ValuesError, match="cannot be read"):
        Decoder(json.loads(text))
    assert not mark.exists()


HEAD = '{"format": "symcavity.derivation", "version": '


@pytest.mark.parametrize("text", ["", "[]", "{}", HEAD + "9}", HEAD + "1}"])
def test_anything_else_is_refused(text):
    with pytest.raises(ValuesError):
        Derivation.from_json(text)


def test_unevaluated_nodes_stay_as_they_are():
    a = Symbol("a", real=True)
    for expr in (Eq(a, a, evaluate=False), Symbol("b") + a, 2 * (a + 1), exp(log(a, evaluate=False), evaluate=False)):
        write = Encoder()
        place = write(expr)
        assert str(Decoder(json.loads(json.dumps(write.nodes)))[place]) == str(expr)


def test_globals_that_are_known_to_be_positive_stay_so():
    for symbol in (Global.above_zero("R"), Global("b", positive=True), Global("b")):
        write = Encoder()
        place = write(symbol)
        assert Decoder(write.nodes)[place] == symbol
        assert pickle.loads(pickle.dumps(symbol)) == symbol  # noqa: S301 - this process's own


def test_the_command_line(tmp_path):
    file = tmp_path / "x.json"
    assert main(["derive", "gardner", "--json", str(file)]) == 0
    document = json.loads(file.read_text(encoding="utf-8"))
    jsonschema.validate(document, schema())
    assert all("verdicts" in step for step in document["steps"])
