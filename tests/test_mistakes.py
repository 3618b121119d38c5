"""First tries of a newcomer: each gets an error of ours that says what to write."""

import pytest
from sympy import Rational, Sum, Symbol

from symcavity import (
    ConvexProblem,
    Coupling,
    DeclarationError,
    Feature,
    N,
    P,
    Problem,
    Quenched,
    ValuesError,
    alpha,
    i,
    mu,
)
from symcavity.derivations import gardner, soft_margin
from symcavity.finite.grid import grid_points
from symcavity.model.keywords import known_words

x, w = Coupling("x"), Feature("w")
norm = Sum(w[i] ** 2, (i, 1, N))
field = Sum(x[mu, i] * w[i], (i, 1, N))


@pytest.mark.parametrize(
    ("mistaken", "hint"),
    [
        (lambda: ConvexProblem(maximize=-norm), "minimize=-("),
        (lambda: ConvexProblem(minimise=norm), "minimize="),
        (lambda: ConvexProblem(norm, constraints=[field >= 1]), "subject_to="),
        (lambda: Feature("s", value=(-1, 1)), "values="),
        (lambda: Coupling("x", varience=1 / N), "variance="),
        (lambda: Quenched("y", mu, distribution=None), "law="),
    ],
)
def test_declarations_name_the_argument_that_was_meant(mistaken, hint):
    with pytest.raises(DeclarationError, match="has no argument") as raised:
        mistaken()
    assert hint in raised.value.hint


@pytest.mark.parametrize(
    ("mistaken", "hint"),
    [
        (lambda: gardner.problem.simulate({alpha: 1}, n=50), "N="),
        (lambda: gardner.problem.simulate({alpha: 1}, N=50, instances=3), "seeds="),
        (lambda: gardner.problem.cavity().solve({alpha: 1}, digits=30), "dps="),
        (lambda: gardner.problem.cavity().solve(kappa=1), "solve({kappa: ...})"),
    ],
)
def test_verbs_name_the_argument_that_was_meant(mistaken, hint):
    with pytest.raises(ValuesError, match="has no argument") as raised:
        mistaken()
    assert hint in raised.value.hint


def test_words_that_are_known_pass():
    @known_words
    def declared(name, law=None):
        return name, law

    assert declared("y", law=2) == ("y", 2)
    with pytest.raises(DeclarationError, match="declared has no argument laws"):
        declared("y", laws=2)


@pytest.mark.parametrize("linear", [Sum(w[i], (i, 1, N)), Sum(field, (mu, 1, P)), Sum(w[i] * Symbol("c"), (i, 1, N))])
def test_an_objective_that_is_linear_in_a_free_state_has_no_minimum(linear):
    with pytest.raises(DeclarationError, match=r"Nothing bounds w\[i\]"):
        ConvexProblem(linear).cavity()
    loss = Sum((1 - field) ** 2, (mu, 1, P))
    assert ConvexProblem(linear + norm + loss).cavity().unknowns  # a penalty and a loss hold it


def test_a_theory_is_compared_with_simulations_only():
    with pytest.raises(ValuesError, match="compared with a simulation, not with 5"):
        gardner.problem.cavity().compare(5)


def test_an_observable_that_is_infinite_is_refused_in_its_own_words():
    solution = soft_margin.problem.cavity().solve({alpha: 2, soft_margin.C: 1})
    with pytest.raises(ValuesError, match=r"average\(1/xi\[mu\]\) is divided by zero at some sites"):
        solution["average(1/xi[mu])"]


def test_a_grid_that_is_a_list_of_numbers_is_refused():
    with pytest.raises(ValuesError, match="The grid is"):
        grid_points([1, 2])
    assert grid_points([{alpha: 1}, {alpha: 2}]) == [{alpha: 1}, {alpha: 2}]


def test_a_step_that_is_not_there_names_its_neighbors():
    with pytest.raises(KeyError, match=r"did you mean 'feature\.insert'") as raised:
        gardner.problem.cavity().derivation["feature.insrt"]
    assert len(str(raised.value)) < 200


def test_a_solution_does_not_head_its_table_with_the_lengths_of_arrays():
    gamma, y = Symbol("gamma", positive=True), Quenched("y", mu)
    theory = ConvexProblem(Sum((y[mu] - field) ** 2, (mu, 1, P)) + gamma * norm).cavity()
    told = str(theory.solve({alpha: 2, gamma: 1, y: [1, -1]})).splitlines()[0]
    assert told == "Solution at alpha = 2, gamma = 1, y = [1, -1]"
    asked = str(theory.solve({P: 4, N: 2, gamma: 1, y: [1, -1, 1, 1]})).splitlines()[0]
    assert {"P = 4", "N = 2"} <= set(asked.removeprefix("Solution at ").split(", "))
    assert theory.solve({alpha: Rational(2), gamma: 1, y: [1, -1]})["q_w"] > 0


def test_sites_without_random_couplings_have_no_cavity_field():
    """A magnet whose spins hear their mean alone, cold and at a temperature."""
    s, field = Feature("s", values=(-1, 1)), Quenched("h", i)
    magnet = Problem(-(Sum(s[i], (i, 1, N)) ** 2) / (2 * N) - Sum(field[i] * s[i], (i, 1, N)))
    with pytest.raises(DeclarationError, match="random couplings"):
        magnet.gibbs(1)
    with pytest.raises(DeclarationError, match="random couplings"):
        ConvexProblem(Sum((w[i] - field[i]) ** 2, (i, 1, N))).cavity()


def test_one_size_is_meant_where_sites_are_added():
    with pytest.raises(ValuesError, match="one number of features"):
        gardner.problem.cavity_experiment({alpha: "1/2"}, N=[40, 60], seeds=2)


def test_a_teacher_of_zeros_has_no_field():
    """Its sign is not a label, and the regression of a student's field on it is not defined."""
    from symcavity.derivations import sign_teacher

    with pytest.raises(ValuesError, match="a field vanishes"):
        sign_teacher.problem.cavity().solve({alpha: 2, sign_teacher.t: {0: 1}})


def test_a_number_of_many_digits_is_said_in_a_few():
    """Cut after sixty digits, it was another number."""
    with pytest.raises(ValuesError, match=r"The value of kappa is about 1\.00e\+400\."):
        gardner.problem.cavity().solve({gardner.kappa: 10**400})
