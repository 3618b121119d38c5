"""The record of a derivation: what is given, what each verb claimed, and what follows, in the order of the method."""

from __future__ import annotations

from dataclasses import replace

from symcavity.algebra.phi import phi
from symcavity.method.bayes import bayes_steps
from symcavity.method.declared import declaration, definitions, sources
from symcavity.method.descent import descent_steps
from symcavity.method.free_energy_steps import free_energy_steps
from symcavity.method.gibbs import gibbs_steps
from symcavity.method.identity import identity_steps
from symcavity.method.kernel import coefficient_steps, kernel_steps
from symcavity.method.load import load_steps
from symcavity.method.messages import message_steps
from symcavity.method.minimum import minimum_steps
from symcavity.method.moving import moving_steps
from symcavity.method.named import named_steps
from symcavity.method.optimality_steps import optimality_steps
from symcavity.method.results import closing_steps, result_steps
from symcavity.method.stability import stability_steps
from symcavity.method.substitute import substitution_steps
from symcavity.method.symmetry import symmetry_steps
from symcavity.method.theory import Theory
from symcavity.record.derivation import Derivation, Step
from symcavity.record.maker import StepMaker


def record(theory: Theory) -> Derivation:
    """Return the record of a theory's derivation; each step gets the theory as evidence for its witness."""
    system = theory.system
    make = StepMaker(system.source, theory.is_naive)
    given, *disorder = declaration(system, make)
    steps = [
        given,
        *descent_steps(system, make),
        *kernel_steps(system, make),
        *system.rewritten.steps(make),
        *disorder,
        *definitions(system, make),
        *([*optimality_steps(system, make), *coefficient_steps(system, make)] if system.record is not None else []),
        *gibbs_steps(system, make),
        *sources(system, make),
        *theory.steps,
        *(at_rest(theory, make) if system.time is None else moving_steps(theory, make)),
    ]
    every = tuple(steps)
    steps = [replace(step, evidence={**step.evidence, "theory": theory, "record": every}) for step in steps]
    steps = _defined_first(steps)
    method = "naive" if theory.is_naive else "cavity"
    name = system.name or ("A convex problem" if system.convex else "A system of equations")
    results = tuple(claim for step in steps if step.rule == "result" for claim in step.claims)
    parameters = tuple(theory.order_parameters.items())
    return Derivation(name, method, tuple(steps), parameters, results, system.cite, system.says)


def at_rest(theory: Theory, make: StepMaker) -> list[Step]:
    """What follows from closed equations in numbers, of sites that keep still."""
    return [
        *closing_steps(theory, make),
        *load_steps(theory, make),
        *(substitution_steps(theory, make) if theory.is_naive else []),
        *result_steps(theory, make),
        *named_steps(theory, make),
        *identity_steps(theory, make),
        *symmetry_steps(theory.system, make),
        *minimum_steps(theory, make),
        *free_energy_steps(theory, make),
        *bayes_steps(theory, make),
        *stability_steps(theory, make),
        *message_steps(theory, make),
    ]


def _defined_first(steps: list[Step]) -> list[Step]:
    """Move the definition of the truncated moments before the first claim in which they stand."""
    definition = next((s for s in steps if s.rule == "truncated_moments"), None)
    user = next((s for s in steps if any(c.difference.has(phi) for c in s.claims)), None)
    if definition is None or user is None or user is definition:
        return steps
    rest = [s for s in steps if s is not definition]
    place = rest.index(user)
    return [*rest[:place], replace(definition, section=user.section), *rest[place:]]
