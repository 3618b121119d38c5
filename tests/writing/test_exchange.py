"""Derivations as JSON: round trips, the schema, what is refused, and claims that were falsified on the way."""

import json
import pickle
import subprocess
import sys

import jsonschema
import pytest
from sympy import Dummy, Eq, Sum, Symbol, exp, log, symbols
from sympy.stats import Gamma, Normal, Poisson

from symcavity import (
    Complementary,
    ConvexProblem,
    Coupling,
    Derivation,
    Feature,
    Global,
    N,
    P,
    Quenched,
    System,
    ValuesError,
    i,
    mu,
)
from symcavity.cli import main
from symcavity.derivations import gardner
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


@pytest.mark.parametrize("problem", [species(), learning(), drawn()])
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
