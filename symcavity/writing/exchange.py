"""A derivation as JSON, and back: claims, reasons, witnesses, and the declaration that they can be checked against."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sympy import Equality, Expr, oo
from sympy.core.relational import Relational

from symcavity.errors import SymcavityError, ValuesError
from symcavity.method.descent import descent
from symcavity.method.fluctuation_steps import fluctuation_steps, fluctuations_of
from symcavity.method.gibbs import gibbs
from symcavity.method.kkt import optimality
from symcavity.method.lowest import lowest
from symcavity.method.moving_pair import moving_pair_of
from symcavity.method.moving_pair_steps import moving_pair_steps
from symcavity.method.observed import observed_of, observed_steps
from symcavity.method.pair import pair_of
from symcavity.method.pair_steps import pair_steps
from symcavity.method.record import record
from symcavity.method.theory import Theory
from symcavity.model.complementary import Complementary
from symcavity.model.equations import Equation
from symcavity.model.problem import Problem
from symcavity.model.system import System
from symcavity.model.times import Time
from symcavity.record.derivation import Checked, Derivation, Step
from symcavity.writing.assumptions import assumption
from symcavity.writing.limits import WORDS, check_words
from symcavity.writing.plain_data import RAW, Decoder, Encoder
from symcavity.writing.printing import tex, text
from symcavity.writing.text import inline

FORMAT, VERSION = "symcavity.derivation", 1
SUPPORTED = f"a {FORMAT} of version {VERSION}, as Derivation.to_json writes it"


def schema() -> dict[str, Any]:
    """The JSON Schema of a derivation."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name("derivation.schema.json").read_text(encoding="utf-8"))
    return found


# -- writing ---------------------------------------------------------------------------------------


def derivation_json(derivation: Derivation, checked: Iterable[Checked] | None = None) -> str:
    """Return a derivation as JSON.

    Parameters
    ----------
    derivation : Derivation
    checked : iterable of Checked, optional
        The verdicts of its witnesses.

    Raises
    ------
    UnsupportedLaw
        If a claim or the declaration holds what is not written as data, such as an undefined function.
    """
    write = Encoder()
    verdicts = {row.step.key: row.verdicts for row in checked} if checked is not None else None
    steps = []
    for step in derivation:
        steps.append(
            {
                "key": step.key,
                "rule": step.rule,
                "section": step.section,
                "claims": [_claim(c, write) for c in step.claims],
                "assumptions": [{"name": name, "text": inline(assumption(name, d))} for name, d in step.assumptions],
                "rests_on": list(step.rests_on),
                "reference": step.reference,
            }
        )
        if verdicts is not None:
            steps[-1]["verdicts"] = [
                {"witness": v.kind, "ok": v.ok, "detail": v.detail}
                for v in verdicts.get(step.key, ())
                if v.ok is not None
            ]
    document = {
        "format": FORMAT,
        "version": VERSION,
        "title": derivation.title,
        "method": derivation.method,
        "declaration": _declaration(derivation, write),
        "parameters": [
            {"symbol": write(s), "meaning": write(m), "latex": tex(s), "text": f"{text(s)} = {text(m)}"}
            for s, m in derivation.parameters
        ],
        "steps": steps,
        "results": [_claim(c, write) for c in derivation.results],
        "nodes": write.nodes,
    }
    if asked := _asked(derivation, write):
        document["asked"] = asked
    return json.dumps(document, indent=1, ensure_ascii=False)


def _asked(derivation: Derivation, write: Encoder) -> dict[str, Any]:
    """The requests beside the theory: two sites over what varies, the scatter of a minimum or of observables."""
    last = derivation.steps[-1].evidence
    if (pair := last.get("pair")) is not None:
        over = [q if isinstance(q, Time) else q.at_site() for q in pair.over]
        means = {"means": True} if pair.given is not None else {}
        return {"observed": write(pair.observed), "over": [write(q) for q in over], **means}
    if (observed := last.get("observed")) is not None:
        return {"between": [write(source.expr) for source in observed.sources]}
    return {"scatter": True} if "fluctuations" in last else {}


def _answers(asked: Mapping[str, Any], theory: Theory, nodes: Decoder) -> list[Step]:
    """The steps that answer it."""
    if "over" in asked:
        over, observed = [nodes[q] for q in asked["over"]], nodes[asked["observed"]]
        if theory.system.time is not None:
            return moving_pair_steps(moving_pair_of(theory, observed, over))
        found = pair_of(theory, observed, over)
        return pair_steps(found.beside_means() if asked.get("means") else found)
    if "between" in asked:
        return observed_steps(observed_of(theory, [nodes[key] for key in asked["between"]]))
    return fluctuation_steps(fluctuations_of(theory)) if asked.get("scatter") else []


def _claim(claim: Equation, write: Encoder) -> dict[str, Any]:
    return {"latex": tex(claim), "text": text(claim), "lhs": write(claim.lhs), "rhs": write(claim.rhs)}


def _declaration(derivation: Derivation, write: Encoder) -> dict[str, Any]:
    system = derivation.steps[0].evidence["theory"].system

    def entry(e: Any) -> dict[str, Any]:
        if isinstance(e, Equation | Equality):
            return {"equation": [write(e.lhs), write(e.rhs)]}
        return {"expression": write(e)}

    found: dict[str, Any] = {"name": system.name, "cite": system.cite, "says": system.says}
    found["source"] = system.source
    found["fixed"] = [{"equation": [write(e.lhs), write(e.rhs)]} for e in system.fixed]
    found["named"] = [{"equation": [write(name), write(value)]} for name, value in system.named.items()]
    if system.record is not None:
        minimize, subject_to = system.record.problem.typed
        return found | {"minimize": write(minimize), "subject_to": [entry(c) for c in (*subject_to, *system.stated)]}
    if system.weights:  # a Gibbs measure: the problem, and its temperature
        typed, weight = system.rewritten.typed, next(iter(system.weights.values()))
        measure = {"beta": write(weight.beta), "convex": system.convex}
        measure |= {"select": "local"} if weight.is_local else {}
        return found | measure | {"minimize": write(typed.objective), "subject_to": [entry(c) for c in typed.entries]}
    if system.origin is not None:  # a descent: the problem, and how it is descended
        origin = system.origin
        (minimize, subject_to), ranges = origin.problem.typed, origin.problem.ranges
        how: dict[str, Any] = {"momentum": write(origin.momentum), "batch": write(origin.batch)}
        how |= {"initial": [entry(e) for e in origin.initial]}
        how |= {} if origin.rate is None else {"rate": write(origin.rate)}
        problem = {"minimize": write(minimize), "subject_to": [entry(c) for c in (*subject_to, *ranges)]}
        return found | {"name": origin.problem.name, "descent": how} | problem
    equations, conditions = system.typed
    more = {"equations": [entry(e) for e in equations], "conditions": [entry(c) for c in (*conditions, *system.stated)]}
    return found | more | ({"initial": [entry(e) for e in system.initial]} if system.initial else {})


# -- reading ---------------------------------------------------------------------------------------


def read_derivation(source: str | bytes | Mapping[str, Any]) -> Derivation:
    """Return the derivation that a JSON text holds.

    The claims are those of the text.  What their witnesses start from is derived again from the declaration in it.

    Raises
    ------
    ValuesError
        For anything but a derivation as it is written, or steps that this version of the package does not make.
    """
    try:
        document = json.loads(source) if isinstance(source, str | bytes) else source
    except (ValueError, RecursionError) as problem:
        raise ValuesError(f"This is not JSON: {problem}.", SUPPORTED) from None
    if not isinstance(document, Mapping) or document.get("format") != FORMAT or document.get("version") != VERSION:
        mark = [document.get(k) for k in ("format", "version")] if isinstance(document, Mapping) else document
        raise ValuesError(f"The file is not a derivation of a known version: {mark!r:.80}.", SUPPORTED)
    try:
        return _read(document)
    except SymcavityError as problem:
        raise ValuesError(f"The derivation cannot be read: {problem.found}", problem.supported, problem.hint) from None
    except RAW as problem:
        raise ValuesError(f"The derivation is incomplete: {type(problem).__name__}: {problem}.", SUPPORTED) from None


def _read(document: Mapping[str, Any]) -> Derivation:
    for part in ("steps", "parameters", "results"):
        if not isinstance(document[part], list):
            raise ValuesError(f"The {part} are {document[part]!r:.60}.", "a list")
    method = document["method"]
    if method not in ("cavity", "naive"):
        raise ValuesError(f"The method is {method!r:.40}.", "cavity, naive")
    system = _system(document["declaration"], Decoder(document["nodes"]))
    theory = Theory(system, naive=method == "naive")
    fresh = [*record(theory), *_answers(document.get("asked", {}), theory, Decoder(document["nodes"]))]
    numbers = Encoder()  # bound symbols are those of the new derivation, by the order in which they come
    for step in fresh:
        for claim in step.claims:
            numbers(claim.lhs)
            numbers(claim.rhs)
    nodes = Decoder(document["nodes"], numbers.dummies)

    def claims(entries: Any) -> tuple[Equation, ...]:
        return tuple(Equation(_expression(nodes[e["lhs"]]), _expression(nodes[e["rhs"]])) for e in entries)

    def reason(entry: Mapping[str, Any]) -> dict[str, str]:
        return {"text": check_words(entry["text"], "a reason", WORDS)}

    made = {step.key: step for step in fresh}
    steps: list[Step] = []
    for entry in document["steps"]:
        own = made.get(entry["key"])
        if own is None or own.rule != entry["rule"]:
            raise ValuesError(
                f"The step {entry['key']!r:.80} by the rule {entry['rule']!r:.80} does not belong to this derivation.",
                SUPPORTED,
            )
        data = dict(own.assumptions)
        steps.append(
            replace(
                own,
                claims=claims(entry["claims"]),
                section=check_words(entry["section"], "a section"),
                assumptions=tuple((a["name"], data.get(a["name"], reason(a))) for a in entry["assumptions"]),
                rests_on=tuple(map(str, entry["rests_on"])),
                reference=check_words(entry["reference"], "a reference"),
            )
        )
    parameters = tuple((nodes[p["symbol"]], nodes[p["meaning"]]) for p in document["parameters"])
    results = claims(document["results"])
    title = check_words(document["title"], "the title", WORDS)
    return Derivation(title, method, tuple(steps), parameters, results, system.cite, system.says)


class AnyProblem(Problem):
    """A problem of which no convexity is asked."""

    asks_convexity = False


def _expression(value: Any) -> Any:
    if not isinstance(value, Expr) and not hasattr(value, "is_Matrix"):
        raise ValuesError(f"A claim is about {value!r:.60}.", "expressions")
    return value


def _system(declared: Mapping[str, Any], nodes: Decoder) -> System:
    """The system that a declaration in the text stands for."""

    def equation(pair: Any) -> Equation:
        return Equation(nodes[pair[0]], nodes[pair[1]])

    def entry(e: Mapping[str, Any]) -> Any:
        if "expression" not in e:
            return equation(e["equation"])
        found = nodes[e["expression"]]
        if not isinstance(found, Relational | Complementary):
            raise ValuesError(f"The condition is {found!r:.60}.", "relations")
        return found

    source = {check_words(k, "source"): check_words(v, "source") for k, v in declared["source"].items()}
    rest: dict[str, Any] = {k: check_words(declared[k], f"the {k}", WORDS) for k in ("name", "cite")}
    rest["says"] = check_words(declared.get("says", ""), "what the declaration says", WORDS)
    rest["source"] = source
    fixed = [equation(e["equation"]) for e in declared["fixed"]]
    rest["named"] = {nodes[a]: nodes[b] for a, b in (e["equation"] for e in declared.get("named", ()))}
    if "minimize" in declared:
        conditions = [entry(e) for e in declared["subject_to"]]
        conditions = [Equality(e.lhs, e.rhs, evaluate=False) if isinstance(e, Equation) else e for e in conditions]
        if "beta" in declared:
            problem = (Problem if declared["convex"] is True else AnyProblem)(
                nodes[declared["minimize"]], conditions, fixed, **rest
            )
            beta = _expression(nodes[declared["beta"]])
            return lowest(problem, declared.get("select", "lowest")) if beta == oo else gibbs(problem, beta)
        problem = Problem(nodes[declared["minimize"]], conditions, fixed, **rest)
        if "descent" in declared:
            how = declared["descent"]
            rate = _expression(nodes[how["rate"]]) if "rate" in how else None
            momentum, batch = (_expression(nodes[how[k]]) for k in ("momentum", "batch"))
            return descent(problem, rate, momentum, batch, [equation(e["equation"]) for e in how["initial"]])
        return optimality(problem)
    equations, pairs = ([entry(e) for e in declared[k]] for k in ("equations", "conditions"))
    initial = [equation(e["equation"]) for e in declared.get("initial", ())]
    return System(equations, pairs, fixed, initial=initial, **rest)
