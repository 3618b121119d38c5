"""A solution is a read-only mapping by name, shows the digits that it has, and travels to other processes."""

import pickle
from collections.abc import Mapping

import mpmath
import pytest
from sympy import Eq, Symbol, cse, solve

from symcavity import Equation, ValuesError, alpha, average, i
from symcavity.derivations import gardner, least_variance_portfolio

kappa = gardner.kappa
w = gardner.w
THEORY = gardner.problem.cavity()


@pytest.fixture(scope="module")
def solution():
    return THEORY.solve({kappa: "1/2"}, dps=28)


def test_it_is_a_mapping_in_the_order_of_the_printed_table(solution):
    printed = [line.split("=")[0].strip() for line in str(solution).splitlines()[1:-2]]
    assert isinstance(solution, Mapping)
    assert list(solution) == list(solution.keys()) == list(dict(solution)) == printed
    assert len(solution) == len(printed)
    assert solution.to_dict() == dict(solution.items()) == dict(zip(solution, solution.values(), strict=True))
    assert solution.to_dict()["alpha"] == solution["alpha"] == solution[alpha]
    assert float(solution.values[alpha]) == float(solution[alpha])
    assert set(solution._ipython_key_completions_()) >= {*solution, "kappa"}
    assert solution.get("nothing", 3) == 3


def test_names_are_known_whatever_their_assumptions(solution):
    assert "q_w" in solution
    assert Symbol("q_w") in solution
    assert alpha in solution
    assert "kappa" not in solution
    assert solution[Symbol("q_w")] == solution["q_w"] == solution["average(w[i]**2)"] == solution[average(w[i] ** 2)]


@pytest.mark.parametrize("key", [0, 7, -1, 1.5])
def test_numbers_are_no_names(key, solution):
    with pytest.raises(ValuesError, match="no entry"):
        solution[key]


def test_it_is_read_only(solution):
    with pytest.raises(TypeError):
        solution["q_w"] = 1


def test_digits_that_were_computed_are_shown(solution):
    shown = str(solution["alpha"])
    assert shown == repr(solution["alpha"])[5:-2] == mpmath.nstr(solution["alpha"], 28)
    assert len(shown) == 30
    assert isinstance(solution["alpha"], mpmath.mpf)
    assert str(solution.values[alpha]) == shown
    assert pickle.loads(pickle.dumps(solution["alpha"])) == solution["alpha"]  # noqa: S301 - our own
    assert str(THEORY.solve({kappa: 1})["alpha"]) == "0.519572229604938"


def test_a_solution_is_pickled_and_refined_again_when_asked(solution):
    found = pickle.loads(pickle.dumps(solution))  # noqa: S301 - our own
    assert found.to_dict() == solution.to_dict()
    assert str(found) == str(solution)
    assert found[average(w[i] ** 4)] == solution[average(w[i] ** 4)]
    assert found.sharpen(60) >= 60
    assert found.residual < 1e-40


@pytest.mark.parametrize("values", [{kappa: 0}, {kappa: 0.5}])
def test_limits_and_doubles_are_pickled(values):
    solution = THEORY.solve(values)
    assert pickle.loads(pickle.dumps(solution)).to_dict() == solution.to_dict()  # noqa: S301 - our own


def test_a_theory_cannot_be_set():
    for name in ("foo", "closures", "equations"):
        with pytest.raises(AttributeError):
            setattr(THEORY, name, 1)


def test_equations_are_those_of_sympy():
    theory = least_variance_portfolio.problem.cavity()
    (found,) = solve(theory.equations, theory.unknowns)
    at = dict(zip(theory.unknowns, found, strict=True))
    assert all(e.subs(at).difference.simplify() == 0 for e in theory.equations)
    names, reduced = cse(theory.equations)
    assert names
    assert all(isinstance(e, Equation) for e in reduced)
    assert theory.equations[0].free_symbols
    assert isinstance(theory.equations[0], Eq)


def test_equations_never_collapse_and_take_no_text():
    x = Symbol("x", positive=True)
    held = Equation(x, x)
    assert held.subs(x, 2) == Equation(2, 2)
    assert held.subs({x: 3}) == Equation(3, 3)
    assert bool(Equation(x, -1))
    assert str(held) == "x = x"
    for wrong in (("x", 2), (x, "2"), ({x: "2"},)):
        with pytest.raises(ValueError, match="str"):
            held.subs(*wrong)
    assert pickle.loads(pickle.dumps(held)) == held  # noqa: S301 - our own


def test_arrays_name_the_function():
    with pytest.raises(ValuesError, match=r"theory\.function"):
        THEORY.solve({kappa: [1, 2]})


