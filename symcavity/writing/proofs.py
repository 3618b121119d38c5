"""Proofs of identities as text and as LaTeX."""

from __future__ import annotations

from collections.abc import Sequence

from sympy import latex

from symcavity.algebra.checks import point_text
from symcavity.algebra.prove import Proof, ProofStep
from symcavity.algebra.text import plain
from symcavity.writing.words import sentence


def line_text(step: ProofStep, why: str) -> str:
    """One line of a proof, with its reason below."""
    return f"{plain(step.lhs)} = {plain(step.rhs)}\n      {why}"


def proof_text(proof: Proof, lines: Sequence[str]) -> str:
    """A proof as text: the identity, its lines, and whether it is proved."""
    differ = proof.counterexample is not None
    point = point_text(proof.counterexample) if proof.counterexample is not None else ""
    end = sentence("proof.end", proved=proof.proved, difference=proof.difference, differ=differ, point=point)
    return "\n".join([f"{proof.lhs} = {proof.rhs}", *(f"  {k}.  {line}" for k, line in enumerate(lines, 1)), end])


def proof_latex(proof: Proof, reasons: Sequence[str]) -> str:
    """A proof as aligned LaTeX."""
    rows = [
        rf"{latex(step.lhs)} &= {latex(step.rhs)} && \text{{{_words(why)}}}"
        for step, why in zip(proof.steps, reasons, strict=True)
    ]
    end = rf"&\text{{{_words(sentence('proof.end_formula', proved=proof.proved))}}}"
    rows.append(end if proof.proved else rf"{end}\ {latex(proof.difference)}")
    body = " \\\\\n".join(rows)
    return f"$\\displaystyle \\begin{{aligned}}\n{body}\n\\end{{aligned}}$"


def _words(text: str) -> str:
    for old, new in (("**", "^"), ("^", r"\textasciicircum{}"), ("_", r"\_"), ("%", r"\%")):
        text = text.replace(old, new)
    return text
