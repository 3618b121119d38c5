"""The record of a derivation: steps that say what is claimed, by which rule, and why it applies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Self

from symcavity.model.equations import Equation

SYMBOLIC = "symbolic"
NUMERIC = "50 digits at seeded points"
BRUTE_FORCE = "brute force over explicit sums"
SIMULATION = "finite-size simulation"
PREMISE = "premise"
FEW = 10  # digits: a check to fewer of them is told apart


@dataclass(frozen=True)
class Verdict:
    """What one witness says of a claim: the kind of check, whether it held, and the detail.

    ``ok`` is None where the check could not be made, as at no point that could be solved: nothing is said then.
    ``digits`` says to how many digits a number was checked, where that is fewer than requested.
    """

    kind: str
    ok: bool | None
    detail: str = ""
    digits: int | None = None

    def __bool__(self) -> bool:
        return bool(self.ok)


@dataclass(frozen=True, repr=False)
class Step:
    """One step of a derivation.

    Attributes
    ----------
    key : str
        A unique name such as ``'feature.cavity_field'``; later steps rest on it by this name.
    rule : str
        The name of the rule that made it; writers choose their prose by the rule.
    claims : tuple of Equation
        What is claimed.  An empty tuple marks a step that only introduces words.
    section : str
        The part of the derivation that the step belongs to.
    data : dict
        What the rule's prose needs: symbols, expressions, sides; never sentences.
    assumptions : tuple of (str, dict)
        The assumptions used here: the name of the assumption, and what it needs to be said.
    rests_on : tuple of str
        Keys of the steps that this one uses.
    evidence : dict
        What the witnesses of the rule need beside the claims and the data, and cannot find out: the theory, names, the
        other steps.
    reference : str
        The equation number in the declared source, if any.
    """

    key: str
    rule: str
    claims: tuple[Equation, ...] = ()
    section: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    assumptions: tuple[tuple[str, dict[str, Any]], ...] = ()
    rests_on: tuple[str, ...] = ()
    evidence: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    reference: str = ""

    def __repr__(self) -> str:
        said = "; ".join(map(str, self.claims))
        return f"<step {self.key}: {said}>" if said else f"<step {self.key}>"


@dataclass(frozen=True)
class Checked:
    """A step together with the verdicts on it; truthy if none contradicts it."""

    step: Step
    verdicts: tuple[Verdict, ...]

    def __bool__(self) -> bool:
        return self.ok

    @property
    def ok(self) -> bool:
        """No witness contradicts the claim."""
        return all(v.ok is not False for v in self.verdicts)

    @property
    def digits(self) -> int | None:
        """To how many digits the claim holds, where a witness reaches fewer than ten of them; None of any other."""
        few = [v.digits for v in self.verdicts if v.ok and v.digits is not None and v.digits < FEW]
        return min(few, default=None)

    @property
    def checked(self) -> bool:
        """At least one witness has spoken."""
        return any(v.ok is not None for v in self.verdicts)


@dataclass(frozen=True)
class Verification:
    """The outcome of :meth:`Derivation.verify`; truthy if no claim failed."""

    rows: tuple[Checked, ...]

    def __bool__(self) -> bool:
        return all(row.ok for row in self.rows)

    def __iter__(self) -> Iterator[Checked]:
        return iter(self.rows)

    @property
    def failed(self) -> tuple[Checked, ...]:
        """The steps with a claim that a witness contradicts."""
        return tuple(row for row in self.rows if not row.ok)

    @property
    def unchecked(self) -> tuple[Checked, ...]:
        """The steps whose claims nothing has checked."""
        return tuple(row for row in self.rows if row.step.claims and not row.checked)


@dataclass(frozen=True, repr=False)
class Derivation:
    """An ordered record of steps, which renders as a paper and checks itself.

    Attributes
    ----------
    title : str
    method : str
        ``'cavity'`` or ``'naive'``.
    steps : tuple of Step
    parameters : tuple
        The order parameters, as (symbol, meaning) pairs.
    results : tuple of Equation
        The closed equations after elimination.
    cite : str
        The work whose equation numbers the steps refer to.
    says : str
        What is found about the system, in words: the beginning of a document.
    brief : bool
        Whether it is the part of a record that a paper prints.
    """

    title: str
    method: str
    steps: tuple[Step, ...]
    parameters: tuple[tuple[Any, Any], ...] = ()
    results: tuple[Equation, ...] = ()
    cite: str = ""
    says: str = ""
    brief: bool = False

    def __repr__(self) -> str:
        return f"<derivation of {self.title!r} ({self.method}): {len(self.steps)} steps; print(...) shows them>"

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, key: str | int) -> Step:
        if isinstance(key, int):
            return self.steps[key]
        for step in self.steps:
            if step.key == key:
                return step
        near = get_close_matches(str(key), [step.key for step in self.steps], n=3)
        meant = f"did you mean {' or '.join(map(repr, near))}?" if near else "every step of list(...) has its key"
        raise KeyError(f"No step {key!r}; {meant}")

    def assumptions(self) -> list[tuple[str, dict[str, Any], list[str]]]:
        """Every assumption, with the quantities that it is about and the steps that use it."""
        seen: dict[tuple[str, str], tuple[str, dict[str, Any], list[str]]] = {}
        for step in self.steps:
            for name, data in step.assumptions:
                key = (name, str(sorted(data.items(), key=lambda item: item[0])))
                seen.setdefault(key, (name, data, []))[2].append(step.key)
        return list(seen.values())

    def replaced(self, key: str, **changes: Any) -> Self:
        """Return a copy in which one step is changed (for negative controls)."""
        changed = replace(self[key], **changes)
        return replace(self, steps=tuple(changed if s.key == key else s for s in self.steps))
