"""Results on laws and identities: a rescaling symmetry, a proof."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from symcavity.algebra.prove import Proof as ProofData
from symcavity.algebra.prove import ProofStep as ProofStepData
from symcavity.algebra.prove import prove as find_proof
from symcavity.method.symmetry import Symmetry as SymmetryData
from symcavity.record.verbs import with_verbs


class Symmetry(SymmetryData):
    """A rescaling symmetry, or what breaks it; :class:`symcavity.method.symmetry.Symmetry` says what it holds."""

    @property
    def reason(self) -> str:
        """Why there is no symmetry, in words; empty where there is one."""
        from symcavity.writing.facts import obstacle

        return "".join(map(str, obstacle(vars(self))))

    def __str__(self) -> str:
        from symcavity.writing.words import sentence

        return sentence("symmetry.told", found=self.found, reason=self.reason, names=self.scaled + self.feature_scaled)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from symcavity.writing.facts import obstacle
        from symcavity.writing.html import inline
        from symcavity.writing.words import say

        names = self.scaled + self.feature_scaled
        return f"<p>{inline(say('symmetry.told', found=self.found, reason=obstacle(vars(self)), names=names))}</p>"


class ProofStep(ProofStepData):
    """One line of a proof; :class:`symcavity.algebra.prove.ProofStep` has its attributes."""

    @property
    def text(self) -> str:
        """Why the line holds, in words."""
        from symcavity.writing.facts import proof_line

        return proof_line(self.rule, self.values)

    def __str__(self) -> str:
        from symcavity.writing.proofs import line_text

        return line_text(self, self.text)


class Proof(ProofData):
    """The outcome of :func:`prove`; :class:`symcavity.algebra.prove.Proof` says what it holds."""

    def __str__(self) -> str:
        from symcavity.writing.proofs import proof_text

        return proof_text(self, list(map(str, self.steps)))

    def _repr_latex_(self) -> str:
        from symcavity.writing.proofs import proof_latex

        return proof_latex(self, [step.text for step in map(_line_of_proof, self.steps)])


def _line_of_proof(step: ProofStepData) -> ProofStep:
    return with_verbs(ProofStep, step)


def prove(lhs: Any, rhs: Any = None) -> Proof:
    """Prove an identity between truncated Gaussian moments, and show how.

    Parameters
    ----------
    lhs, rhs : Expr
        The two sides; an ``Eq`` alone is taken apart. They may hold ``phi`` of any orders and
        arguments, Gaussian densities, ``erf``, ``erfc``, derivatives, ``GaussianAverage``, and rational
        functions of these.

    Returns
    -------
    Proof
        True if and only if proved. ``print`` shows the steps; ``difference`` holds what is left.

    Notes
    -----
    Each order is lowered by an integration by parts, as in equations (61) to (64) of Clark & Sompolinsky,
    until both sides are in the basis phi(0, .), phi(1, .), or phi(0, .) and the density.

    Examples
    --------
    >>> from sympy import Symbol
    >>> from symcavity import phi
    >>> kappa = Symbol("kappa", real=True)
    >>> bool(prove(phi(2, kappa), phi(0, kappa) + kappa*phi(1, kappa)))
    True
    >>> prove(phi(2, kappa), phi(0, kappa) - kappa*phi(1, kappa)).difference
    2*kappa*phi(1, kappa)
    """
    found = find_proof(lhs, rhs)
    return with_verbs(Proof, replace(found, steps=list(map(_line_of_proof, found.steps))))
