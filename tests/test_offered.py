"""What is offered to users: completion, and the pages of the reference."""

import re
from importlib import import_module
from pathlib import Path

import symcavity
from symcavity.derivations import gardner

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference.md"


def public(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


def test_completion_has_the_words_of_the_face_and_no_machinery():
    theory = gardner.problem.cavity()
    verbs = {"solve", "function", "compare", "sweep", "closed_form", "derivation", "equations", "order_parameters"}
    assert verbs <= public(theory)
    assert not {"PARTS", "memory", "claimed", "inserted", "replace", "MACHINERY"} & public(theory)
    assert {"cavity", "naive", "kkt", "simulate", "symmetry", "copies"} <= public(gardner.problem)
    assert not {"asks_convexity", "book", "rewritten", "typed", "with_means"} & public(gardner.problem)
    assert not {"origin", "shared_pairs"} & public(gardner.problem.kkt())
    assert not {"beside", "task", "environment", "quick"} & public(theory.solve({gardner.kappa: 1}))
    assert not {"nothing", "reader"} & public(gardner.problem.simulate({gardner.alpha: 1}, N=10, seeds=1))
    assert not {"of", "replaced"} & public(theory.derivation)
    assert public(symcavity) == {*symcavity.__all__, "derivations", "errors", "shapes"}


def test_every_public_name_is_in_the_reference():
    page = REFERENCE.read_text(encoding="utf-8")
    whole = {name for module in re.findall(r"automodule:: ([\w.]+)", page) for name in vars(import_module(module))}
    whole |= set(import_module("symcavity.shapes").__all__)
    named = set(re.findall(r"(?<![\w.])(?:symcavity\.)?(\w+)\b", page))
    assert not [name for name in symcavity.__all__ if name not in whole | named]


def test_every_public_name_has_an_example():
    """Those of ``docs/reference.md``; ``tests/test_examples.py`` runs them."""
    things = {name: getattr(symcavity, name) for name in symcavity.__all__}
    plain = {"N", "P", "alpha", "i", "mu"}
    missing = [name for name, thing in things.items() if name not in plain and ">>> " not in (thing.__doc__ or "")]
    assert not missing
    assert plain < set(things)
