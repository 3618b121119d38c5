"""Declarations are equal where they say the same."""

import copy
import pickle
from importlib import import_module

import pytest
from sympy import Eq, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Feature, N, average, i, mu
from symcavity.loading import installed


@pytest.mark.parametrize("name", installed())
def test_what_was_pickled_equals_itself(name):
    problem = import_module(f"symcavity.derivations.{name}").problem
    for declared in (problem, problem.kkt() if isinstance(problem, ConvexProblem) else copy.copy(problem)):
        back = pickle.loads(pickle.dumps(declared))  # noqa: S301 - our own
        assert back == declared
        assert hash(back) == hash(declared)
        assert copy.deepcopy(declared) == declared


def declared(bound=1, fixed=1, name=""):
    x, w, kappa = Coupling("x"), Feature("w"), Symbol("kappa", positive=True)
    h = Sum(x[mu, i] * w[i], (i, 1, N))
    length = Sum(w[i] ** 2, (i, 1, N)) / 2
    return ConvexProblem(length, [h >= bound], fixed=[Eq(average(w[i] ** 2), fixed / kappa**2)], name=name)


def test_what_differs_is_different():
    assert declared() == declared()
    assert len({declared(), declared(), declared(bound=2), declared(fixed=2), declared(name="another")}) == 4
    assert declared() != declared().kkt()
    used = declared()
    used.cavity()  # what was derived of it does not count
    assert used == declared()
