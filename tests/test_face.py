"""The classes that users hold: what they return, that they travel, and that no verb hides what it does."""

import inspect
import pickle
from dataclasses import replace

import pytest

import symcavity
from symcavity import BipartiteSystem, ConvexProblem, System, Theory, alpha, average, face, i
from symcavity.derivations import gardner, kernel_ridge
from symcavity.face import Derivation, Step, Verification

kappa, w = gardner.kappa, gardner.w


def test_every_verb_gives_an_object_with_verbs():
    system = gardner.problem.kkt()
    theory = system.cavity()
    derivation = theory.derivation
    assert System is BipartiteSystem
    assert isinstance(gardner.problem, ConvexProblem)
    assert type(system) is BipartiteSystem
    assert gardner.problem.kkt() is system
    assert type(theory) is type(gardner.problem.naive()) is Theory
    assert theory.system is system
    assert type(derivation) is Derivation
    assert {type(step) for step in derivation} == {Step}
    assert type(derivation.replaced("problem", reference="1")) is Derivation
    assert type(derivation.replaced("problem", reference="1")["problem"]) is Step
    assert type(derivation.verify(15)) is Verification
    assert replace(derivation["problem"]) == derivation["problem"]
    marked = kernel_ridge.problem.assuming_positive(kernel_ridge.problem.quenched)
    assert type(marked) is BipartiteSystem


@pytest.mark.parametrize("size", [12, [8, 12]])
def test_what_users_hold_travels(size):
    theory = gardner.problem.cavity()
    sim = gardner.problem.simulate({alpha: "1/2"}, N=size, seeds=2)
    derivation = theory.derivation
    data = pickle.dumps((gardner.problem, gardner.problem.kkt(), theory, derivation, sim))
    problem, system, again, record, measured = pickle.loads(data)  # noqa: S301 - our own bytes
    assert str(problem) == str(gardner.problem)
    assert str(system.cavity()) == str(theory) == str(again)
    assert again.solve({kappa: 1})[alpha] == theory.solve({kappa: 1})[alpha]
    assert [step.claims for step in record] == [step.claims for step in derivation]
    assert type(measured) is type(sim) is getattr(face, type(sim).__name__)
    moment = average(w[i] ** 2)
    assert measured[moment].mean == sim[moment].mean
    steps = {step.key: [v.ok for v in measured.witness(step)] for step in record}
    assert any(steps.values())


def test_every_verb_says_what_it_does():
    for cls in (ConvexProblem, BipartiteSystem, Theory, Derivation, Step):
        assert cls.__doc__
        for name, member in inspect.getmembers(cls):
            if not name.startswith("_"):
                assert inspect.getdoc(member), f"{cls.__name__}.{name}"


def test_every_public_name_is_there():
    for name in symcavity.__all__:
        assert getattr(symcavity, name) is not None
    assert set(symcavity.__all__) <= set(dir(symcavity))
    with pytest.raises(AttributeError, match="no_such_name"):
        symcavity.no_such_name  # noqa: B018 - the access is the test
    with pytest.raises(AttributeError, match="no_such_name"):
        face.no_such_name  # noqa: B018
