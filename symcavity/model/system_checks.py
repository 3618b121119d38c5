"""Checks of a system, kind by kind, with errors that say what was found, before anything is derived."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sympy import S, Symbol

from symcavity.errors import DeclarationError
from symcavity.model.equations import Equation
from symcavity.model.kinds import DATUM, FEATURE, Kind, i, mu
from symcavity.model.laws import Law
from symcavity.model.quantities import Field, Quenched, Variable, site_quantities


def check_laws(laws: Mapping[Kind, Law]) -> None:
    """Refuse laws that hear nothing, hear what nothing determines, or do not have as many conditions as variables."""
    if not laws:
        raise DeclarationError(
            "No site hears others through random couplings, and so none has a cavity field.",
            "sites that are coupled by sums over random couplings, averages over all sites beside these",
            'x = Coupling("x"); Eq(h[mu], Sum(x[mu, i]*w[i], (i, 1, N)))',
        )
    for law in laws.values():
        if not law.fields:
            _refuse_deaf(law, laws)
        _check_heard(law, laws)
        count = len(law.equations) + len(law.pairs)
        if count != len(law.unknowns):
            names = ", ".join(map(str, law.unknowns))
            raise DeclarationError(
                f"The {law.kind.sites} have {len(law.unknowns)} variables ({names}) "
                f"and {count} equations and conditions.",
                "as many equations and complementarity conditions as variables, for each kind of site",
            )


def _refuse_deaf(law: Law, laws: Mapping[Kind, Law]) -> None:
    sent = next((f for one in laws.values() for f in one.fields if f.sender == law.kind), None)
    if sent is not None and not sent.states():
        raise DeclarationError(
            f"The {law.kind.plural} send {sent.emission}, which contains no variable: they do not respond to anything.",
            "kinds of sites with variables; numbers drawn for each site",
            f"such a sum is a Gaussian number of its own at each {sent.hearer} site: "
            f'Quenched("g", {sent.hearer.index}, law=Normal("g", 0, 1)) times the root of its variance',
        )
    other = next((k for k in laws if k != law.kind), DATUM if law.kind == FEATURE else FEATURE)
    raise DeclarationError(
        f"No equation of the {law.kind.sites} contains a sum over random couplings to other sites.",
        "a system in which every kind of site hears others through random couplings; averages over all sites beside "
        "these",
        f"a term Sum(x[{mu}, {i}]*..., ({', '.join(map(str, other.range))}))",
    )


def _check_heard(law: Law, laws: Mapping[Kind, Law]) -> None:
    for f in law.fields:
        drawn = [q for q in site_quantities(f.emission, Quenched) if q.family.given is not None]
        if drawn and not f.states():
            raise DeclarationError(
                f"{f.emission}, which is sent to others, depends on the field from which {drawn[0]} is drawn, "
                "and is not a variable.",
                "a variable with an equation of its own",
                f"Eq(sent[{f.sender.index}], {f.emission}), and sums of sent",
            )
        for state in f.states():
            if state not in laws[f.sender].unknowns:
                raise DeclarationError(
                    f"{state} is heard through {f.coupling} but nothing determines it.",
                    "an equation or a condition for every variable",
                )


def check_labels(quenched: Iterable[Quenched], laws: Mapping[Kind, Law]) -> None:
    """Refuse labels that are drawn on what is no field of quenched parameters."""
    for label in (q for q in quenched if q.given is not None):
        law = laws[label.slots[0]]
        told = next((e.rhs for e in law.equations if e.lhs == label.given), S.Zero)
        heard = [f for f in law.fields if told.has(f.symbol)]
        if not heard or any(f.states() for f in heard) or site_quantities(told, Variable, Field):
            raise DeclarationError(
                f"The label {label} is drawn on {label.given}, which is not a field of quenched parameters.",
                "a sum of couplings times quenched parameters, as a Field with an equation of its own",
                "Eq(u[mu], Sum(x[mu, i]*t[i], (i, 1, N)))",
            )


def check_fixed(
    fixed: Sequence[Equation], laws: Mapping[Kind, Law], named: Iterable[Symbol], parameters: Sequence[Symbol]
) -> None:
    """Refuse conditions on averages of what no law determines, or more of them than parameters that adapt."""
    for condition in fixed:
        for q in site_quantities(condition.lhs, Variable, Field):
            if not any(q in law.unknowns for law in laws.values()):
                raise DeclarationError(
                    f"The fixed condition {condition} is about {q}, which the system does not contain.",
                    ", ".join(str(u) for law in laws.values() for u in law.unknowns),
                )
    if taken := [name for name in named if name.name in {s.name for s in parameters}]:
        raise DeclarationError(f"{taken[0]} names an observable, and is a parameter.", "names of their own")
    if len(fixed) > len(parameters) + 1:
        raise DeclarationError(
            f"There are {len(fixed)} fixed conditions, and only alpha"
            + "".join(f", {p}" for p in parameters) + " can adapt to them.",
            "one condition for each quantity that adapts: alpha or a parameter",
        )
