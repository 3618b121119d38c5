"""Random declarations as text: a case is the source of a program, so that what is printed is what ran."""

# ruff: noqa: E501 - tables
from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from random import Random

IMPORTS = """\
from sympy import *
from sympy.stats import Gamma, Normal
from symcavity import *
"""
WORDS = {  # every word that a declaration may use, in an order in which they can be defined
    "a, K": 'Sites("a", "K")',
    "j": 'Symbol("j", integer=True)',
    "C": 'Symbol("C", positive=True)',
    "R": 'Symbol("R", positive=True)',
    "c": 'Symbol("c", positive=True)',
    "gain": 'Symbol("gain", positive=True)',
    "kappa": 'Symbol("kappa", positive=True)',
    "shift": 'Symbol("shift", real=True)',
    "l": 'Quenched("l", i, positive=True)',
    "s": 'Quenched("s", mu, positive=True)',
    "y": 'Quenched("y", mu)',
    "noise": 'Quenched("noise", mu)',
    "t": 'Quenched("t", i)',
    "m": 'Quenched("m", i)',
    "x": 'Coupling("x")',
    "z": 'Coupling("z")',
    "za": 'Coupling("za", between=(mu, a))',
    "F": 'Coupling("F", between=(a, i))',
    "J": 'Coupling("J", between=(i, i))',
    "w": 'Feature("w")',
    "v": 'Feature("v")',
    "h": 'Variable("h", a)',
    "xi": 'Datum("xi")',
    "zeta": 'Datum("zeta")',
    "b": 'Global("b")',
    "u": "Sum(x[mu, i]*w[i], (i, 1, N))",
    "r": "u",
}
_NAMES = re.compile(r"[A-Za-z_]\w*")
_LINES = {name: head for head in WORDS for name in head.split(", ")}

SIZES = ["1", "1/2", "2", "3/10", "5", "1/10"]
FAR = ["20", "1/50", "1000", "1/10000"]
LOADS = ["1/2", "3/10", "1", "2", "3/2", "4/5", "5", "1/20"]
SIGNS = "{1: '1/2', -1: '1/2'}"
ANY = [SIGNS, "{2: '1/3', -1: '2/3'}", "{0: '1/2', 1: '1/2'}", "Normal('n', 0, 1)", "{1: 1}"]
POSITIVE = ["{'1/5': '1/2', '9/5': '1/2'}", "{1: '9/10', 4: '1/10'}", "{1: 1}", "Gamma('G', 2, 1)"]
LAWS = {"y": ANY, "noise": ["Normal('e', 0, '1/2')", *ANY], "t": ANY, "m": ANY, "l": POSITIVE, "s": POSITIVE}


@dataclass(frozen=True)
class Case:
    """A declaration and a point, as source text.

    Attributes
    ----------
    parts : dict
        By keyword of the problem or the system, the terms or relations.
    words : dict
        Definitions other than the usual ones.
    values : dict
        Values by the text of their keys.
    dps : str
    system : bool
        Whether it is declared by its equations; else it is a convex problem.
    spoiled : str
        What was done to make it ill-formed, if anything was.
    """

    parts: dict[str, tuple[str, ...]]
    words: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    dps: str = "15"
    system: bool = False
    spoiled: str = ""

    @property
    def used(self) -> list[str]:
        """The words that the declaration needs, in the order of their definitions."""
        words = {**WORDS, **self.words}
        text = [" ".join(entry for part in self.parts.values() for entry in part)]
        found: set[str] = set()
        while text:
            new = {_LINES[n] for n in _NAMES.findall(text.pop()) if n in _LINES} - found
            found |= new
            text += [words[head] for head in sorted(new)]
        return [head for head in words if head in found]

    @property
    def point(self) -> dict[str, str]:
        """The values of what stands in the declaration."""
        if self.spoiled:
            return self.values
        known = {n for head in self.used for n in head.split(", ")}
        sizes = {"K/N"} if "K" in known else set()
        sizes |= {"alpha"} if known & {"x", "z", "za", "xi", "y", "s", "noise"} else set()
        return {k: v for k, v in self.values.items() if k in known | sizes}

    def declaration(self) -> str:
        """The source that declares the problem."""
        words = {**WORDS, **self.words}
        lines = [IMPORTS] + [f"{head} = {words[head]}" for head in self.used]
        parts = []
        for keyword, entries in self.parts.items():
            joined = " + ".join(entries) if keyword == "minimize" else f"[{', '.join(entries)}]"
            if entries:
                parts.append(f"    {keyword}={joined},")
        return "\n".join([*lines, f"problem = {'System' if self.system else 'ConvexProblem'}(", *parts, ")"])

    def source(self) -> str:
        """The whole program."""
        values = ", ".join(f"{k}: {v}" for k, v in self.point.items())
        return f"{self.declaration()}\nvalues, dps = {{{values}}}, {self.dps}\n"


class Draw(Random):
    """Random choices by weight."""

    def one(self, **weights: float) -> str:
        """One of the names, in proportion to its weight."""
        return self.choices(list(weights), list(weights.values()))[0]

    def maybe(self, share: float) -> bool:
        """True in a share of the cases."""
        return self.random() < share

    def size(self) -> str:
        """A positive number, sometimes far from one."""
        return repr(self.choice(FAR if self.maybe(0.08) else SIZES))


def generate(seed: int, number: int) -> Case:
    """Return the case with a number: a function of the two, and of nothing else."""
    draw = Draw(f"{seed}/{number}")
    shape = draw.one(two=0.72, three=0.12, system=0.16)
    case = {"two": _two_kinds, "three": _three_kinds, "system": _system}[shape](draw)
    values = {name: draw.choice(laws) for name, laws in LAWS.items()}
    values |= {"alpha": repr(draw.choice(LOADS)), "K/N": repr(draw.choice(LOADS[:6]))}
    values |= {name: draw.size() for name in ("C", "R", "c", "gain", "kappa")}
    values |= {"shift": repr(draw.choice(["0", "1/2", "-1", "1"]))}
    if case.parts.get("fixed"):
        del values[draw.choice(["alpha", "alpha", *(n for n in ("C", "R", "c", "kappa") if n in case.used)])]
    case = replace(case, values=values, dps=draw.one(**{"15": 0.85, "25": 0.15}))
    return _spoil(draw, case) if draw.maybe(0.2) else case


# -- convex problems of two kinds ----------------------------------------------------------------


def _two_kinds(draw: Draw) -> Case:
    words: dict[str, str] = {}
    variance = draw.one(**{"1/N": 0.7, "l[i]/N": 0.12, "s[mu]/N": 0.06, "l[i]*s[mu]/N": 0.04, "4/N": 0.04, "c**2/N": 0.04})
    if variance != "1/N":
        words["x"] = f'Coupling("x", variance={variance})'
    about, field_text = _field(draw)
    if field_text != WORDS["u"]:
        words["u"] = field_text
    minimize, subject_to = [_penalty(draw, "w", "i", "N")], []
    if "v[i]" in field_text:
        minimize.append(_penalty(draw, "v", "i", "N"))
    if "b" in _NAMES.findall(field_text) and draw.maybe(0.4):
        minimize.append("R*N*b**2/2")
    hard = draw.maybe(0.12)
    if hard:
        subject_to.append(draw.choice(["u >= 1", "u >= kappa", "y[mu]*u >= 1", "Abs(u) <= 1", "Eq(u, y[mu])"]))
    else:
        minimize_more, subject_more = _loss(draw, about)
        minimize += minimize_more
        subject_to += subject_more
    if draw.maybe(0.2):
        subject_to.append(draw.choice(["w[i] >= 0", "Abs(w[i]) <= 1", "w[i] <= R", "w[i] >= -l[i]", "w[i] <= 1 + t[i]"]))
    fixed = []
    if draw.maybe(0.25 if hard else 0.04):
        fixed.append(draw.choice(["Eq(average(w[i]**2), 1/kappa**2)", "Eq(average(w[i]**2), 1)"]))
    if "u" in words and about == "teacher":
        words["r"] = draw.choice(["u", "u - noise[mu]"])
    return Case({"minimize": tuple(minimize), "subject_to": tuple(subject_to), "fixed": tuple(fixed)}, words)


def _field(draw: Draw) -> tuple[str, str]:
    """What the data hear, and whether it is a residual by itself."""
    plain = WORDS["u"]
    shape = draw.one(plain=0.5, bias=0.12, teacher=0.14, second=0.05, scaled=0.05, parts=0.05, mean=0.05, offset=0.04)
    texts = {
        "plain": plain,
        "bias": f"{plain} + b",
        "teacher": "Sum(x[mu, i]*(w[i] - t[i]), (i, 1, N))",
        "second": f"{plain} + Sum(z[mu, i]*{draw.choice(['w[i]', 't[i]'])}, (i, 1, N))",
        "scaled": "Sum(m[i]*x[mu, i]*w[i], (i, 1, N))",
        "parts": "Sum(x[mu, i]*(w[i] - v[i]), (i, 1, N))",
        "mean": f"{plain} + {draw.choice(['y[mu]*', ''])}Sum(m[i]*w[i], (i, 1, N))/N",
        "offset": f"{plain} + {draw.choice(['kappa', 's[mu]'])}",
    }
    return ("teacher" if shape == "teacher" else "margin"), texts[shape]


def _penalty(draw: Draw, name: str, index: str, size: str) -> str:
    q = f"{name}[{index}]"
    own = "l[i]*" if index == "i" else ""
    body = draw.one(
        **{
            f"{q}**2/2": 0.4,
            f"R*{q}**2/2": 0.12,
            f"C*Abs({q})": 0.1,
            f"Abs({q}) + R*{q}**2/2": 0.1,
            f"{own}{q}**2/2": 0.05,
            f"{q}**4/4": 0.04,
            f"sqrt(1 + {q}**2)": 0.03,
            f"Max(0, Abs({q}) - 1)**2/2": 0.03,
            f"Piecewise(({q}**2/2, Abs({q}) <= 1), (Abs({q}) - Rational(1, 2), True))": 0.04,
            f"exp(Abs({q}))": 0.02,
            f"({q} - 1)**2/2": 0.03,
            f"Max(-{q}/2, 2*{q}) + {q}**2/2": 0.02,
            f"log(cosh({q}))": 0.02,
        }
    )
    return f"Sum({body}, ({index}, 1, {size}))"


def _loss(draw: Draw, about: str) -> tuple[list[str], list[str]]:
    """Terms of the objective and constraints, of the data."""
    factor = draw.one(**{"C*": 0.6, "": 0.3, "s[mu]*": 0.1})

    def total(body: str) -> str:
        return f"Sum({factor}{body}, (mu, 1, P))" if "[" in factor else f"{factor}Sum({body}, (mu, 1, P))"

    if about == "teacher" or draw.maybe(0.4):
        r = "r" if about == "teacher" else draw.choice(["(u - y[mu])", "(u - noise[mu])", "(y[mu] - u)", "(u - 1)"])
        body = draw.one(
            **{
                f"{r}**2/2": 0.3,
                f"Abs({r})": 0.15,
                f"Max(0, Abs({r}) - R)": 0.08,
                f"Piecewise(({r}**2/2, Abs({r}) <= 1), (Abs({r}) - Rational(1, 2), True))": 0.15,
                f"Max(2*{r}, -{r}/2)": 0.08,
                f"log(cosh({r}))": 0.06,
                f"sqrt(1 + {r}**2)": 0.06,
                f"{r}**4/4": 0.06,
                f"Max(0, {r})**2": 0.06,
            }
        )
        return [total(body)], []
    v = draw.one(u=0.55, **{"y[mu]*u": 0.35, "(u - shift)": 0.1})
    if draw.maybe(0.3):
        slack = draw.choice(["xi[mu]", "xi[mu]**2/2", "(xi[mu] + xi[mu]**2/2)"])
        subject = [f"{v} >= 1 - xi[mu]"] + ([] if slack == "xi[mu]**2/2" and draw.maybe(0.5) else ["xi[mu] >= 0"])
        return [total(slack)], subject
    body = draw.one(
        **{
            f"Max(0, 1 - {v})": 0.25,
            f"Max(0, 1 - {v})**2/2": 0.25,
            f"log(1 + exp(-{v}))": 0.25,
            f"exp(-{v})": 0.06,
            f"(1 - {v})**2/2": 0.1,
            f"Max(1 - {v}, 0, -4*{v})": 0.04,
            f"Piecewise(((1 - {v})**2/2, {v} <= 1), (0, True))": 0.05,
        }
    )
    return [total(body)], []


# -- three kinds, and systems ---------------------------------------------------------------------


def _three_kinds(draw: Draw) -> Case:
    words = {"w": 'Variable("w", i)'}
    shape = draw.one(features=0.4, both=0.4, constrained=0.2)
    penalty = _penalty(draw, "h", "a", "K")
    minimize, subject_to = [penalty], []
    if shape == "features":
        words["u"] = "Sum(x[mu, i]*(w[i] - t[i]), (i, 1, N))"
        words["r"] = draw.choice(["u", "u - noise[mu]", "u + Sum(za[mu, a]*h[a], (a, 1, K))"])
        subject_to.append("Eq(w[i], Sum(F[a, i]*h[a], (a, 1, K)))")
        more = _loss(draw, "teacher")
    else:
        words["u"] = f"{WORDS['u']} + Sum(za[mu, a]*h[a], (a, 1, K))"
        minimize.append(_penalty(draw, "w", "i", "N"))
        more = _loss(draw, "margin")
        if shape == "constrained":
            subject_to.append("w[i] + Sum(F[a, i]*h[a], (a, 1, K)) <= 1")
    if draw.maybe(0.15):
        subject_to.append(draw.choice(["h[a] >= 0", "Abs(h[a]) <= 1"]))
    return Case({"minimize": (*minimize, *more[0]), "subject_to": (*subject_to, *more[1])}, words)


def _system(draw: Draw) -> Case:
    words = {"xi": 'Datum("xi")'}
    shape = draw.one(network=0.35, ridge=0.3, resources=0.2, chain=0.15)
    conditions: list[str] = []
    if shape == "network":
        heard = "gain*Sum(J[i, j]*w[j], (j, 1, N))"
        law = draw.choice(["{0}", "tanh({0})", "Max(0, {0})", "{0} - {0}**3/3", "atan({0})", "{0}/sqrt(1 + {0}**2)"])
        outside, inside = draw.choice([("t[i]", ""), ("", " + t[i]"), ("1", ""), ("", " + shift")])
        rest = f" + {outside}" if outside else ""
        equations = [f"Eq(w[i], {law.format(f'({heard}{inside})')}{rest})"]
    elif shape == "ridge":
        law = draw.choice(["R*w[i]", "w[i] + w[i]**3", "R*w[i] + tanh(w[i])", "l[i]*w[i]"])
        back = draw.choice(["y[mu] - {0}", "C*(1 - {0})", "tanh(y[mu] - {0})", "Max(0, 1 - {0})", "1/(1 + exp({0}))"])
        sign = draw.one(**{"": 0.8, "-": 0.2})
        equations = [
            f"Eq({law}, {sign}Sum(x[mu, i]*xi[mu], (mu, 1, P)))",
            f"Eq(xi[mu], {back.format(WORDS['u'])})",
        ]
    elif shape == "resources":
        equations = [f"Eq(xi[mu], {draw.choice(['1', 's[mu]', 'C'])} - {draw.choice(['', 'gain*'])}{WORDS['u']})"]
        pressure = draw.choice(["kappa", "1", "m[i]"])
        conditions = [f"Complementary(w[i], {draw.choice(['', 'R*w[i] + '])}{pressure} - Sum(x[mu, i]*xi[mu], (mu, 1, P)))"]
    else:
        equations = [
            "Eq(h[a], Sum(F[a, i]*w[i], (i, 1, N)))",
            "Eq(R*w[i], t[i] - Sum(F[a, i]*h[a], (a, 1, K)))",
        ]
    return Case({"equations": tuple(equations), "conditions": tuple(conditions)}, words, system=True)


# -- ill-formed ones ------------------------------------------------------------------------------

_BAD_NUMBERS = ["-1", "0", "'nan'", "'oo'", "'1e400'", "'abc'", "None", "[]", "1j", "'1/0'", "'__import__(\"os\")'", "True"]
_BAD_LAWS = ["{1: '1/2'}", "{1: 2, -1: -1}", "{}", "3", "Normal('n', 0, -1)", "{'a': 1}", "[]", "{1: '1/2', 1.5: '1/2'}"]
_TEXT = [  # what is replaced by what in an entry, once
    ("(i, 1, N)", "(i, 1, N + 1)"), ("(i, 1, N)", "(i, 0, N)"), ("(i, 1, N)", "(mu, 1, P)"), ("(mu, 1, P)", "(i, 1, N)"),
    (">=", ">"), ("<=", "<"), (">= ", "- "), ("w[i]", "w"), ("w[i]", "w[mu]"), ("w[i]", "w[1]"), ("w[i]", "w[i, 1]"),
    ("w[i]", "f(w[i])"), ("1 - ", "0.5 - "), ("/2", "*0.3"), ("/2", "/oo"), ("**2", "**3"), ("**2", "**Rational(1, 2)"),
    ("Abs(", "log("), ("Abs(", "sign("), ("Sum(", "-Sum("), ("Sum(", "Product("), ("Sum(", "I*Sum("), ("C*", "-C*"),
    ("C*", "N*"), ("C*", "b*"), ("C*", "alpha*"), ("R*", "i*"), ("y[mu]", "y[i]"), ("y[mu]", "average(w[i])"),
    ("xi[mu]", "xi[i]"), ("Eq(", "Ne("), ("tanh(", "Heaviside("), ("exp(", "exp(2**"), ("Max(0, ", "Min(0, "),
]
_WORDS_SPOILED = [
    ("x", 'Coupling("x", variance=-1/N)'), ("x", 'Coupling("x", variance=1)'), ("x", 'Coupling("x", variance=w[i]/N)'),
    ("x", 'Coupling("x", variance=0.5/N)'), ("x", 'Coupling("w")'), ("x", 'Coupling("x", between=(mu, mu))'),
    ("x", 'Coupling("x", components=(i, 1, 2))'), ("w", 'Feature("N")'), ("w", 'Feature("")'), ("w", "Feature(3)"),
    ("w", 'Datum("w")'), ("w", 'Symbol("w")'), ("w", 'Feature("w", components=(d, 1, 2))'), ("u", "Symbol('u')"),
    ("u", "Sum(x[mu, i]*w[i], (i, 1, N))**2"), ("u", "Sum(x[mu, i]*w[i]**2, (i, 1, N))"), ("C", 'Symbol("alpha")'),
    ("u", "Sum(x[mu, i]**2*w[i], (i, 1, N))"), ("u", "Sum(x[i, mu]*w[i], (i, 1, N))"), ("C", 'Symbol("C")'),
    ("C", 'Symbol("q_w", positive=True)'), ("C", 'Symbol("S_w", positive=True)'), ("C", 'Symbol("sqrt", positive=True)'),
    ("C", 'Symbol("z_1", positive=True)'), ("C", 'Symbol("lambda", positive=True)'), ("R", 'Symbol("x", positive=True)'),
    ("C", 'Symbol("a_b^c {$", positive=True)'), ("R", 'Global("R")'), ("y", 'Quenched("y", mu, law={1: 2})'),
    ("y", 'Quenched("y", mu, law=Normal("y", 0, 1))'), ("y", 'Quenched("y", i)'), ("b", 'Global("b", positive=True)'),
    ("C", "Rational(1, 3)"), ("C", "oo"), ("C", "nan"), ("C", "0"), ("R", "0.5"), ("kappa", 'Symbol("kappa", integer=True)'),
]
_MORE = {
    "minimize": ["1", "Sum(xi[mu], (mu, 1, P))", "Sum(w[i]*xi[mu], (i, 1, N))", "b", "N*b", "-N*b**2", "Sum(w[i], (i, 1, N))**2/N",
                 "Sum(v[i]**2, (i, 1, N))", "average(w[i])", "Sum(Sum(x[mu, i]*w[i], (i, 1, N))*w[i], (i, 1, N))"],
    "subject_to": ["True", "b >= 0", "C >= 0", "Eq(w[i]**2, 1)", "w[i]**2 >= 1", "w[i] >= xi[mu]", "'w[i] >= 0'", "w[i]",
                   "Sum(w[i], (i, 1, N)) >= 0", "Eq(Sum(w[i], (i, 1, N)), N)", "And(w[i] >= 0, w[i] <= 1)", "w[i] <= oo", "w[i] >= 2*N"],
    "fixed": ["Eq(average(w), 1)", "average(w[i]**2)", "Eq(average(w[i]**2), -1)", "Eq(average(w[i]**2), average(w[i]))", "Eq(C, 1)",
              "Eq(average(w[i]*xi[mu]), 1)", "Eq(average(w[i]), 0)", "Eq(response(w), 1)", "Eq(average(w[i]**2), 0)"],
    "equations": ["Eq(w[i], 1)", "Eq(v[i], w[i])", "Eq(Sum(w[i], (i, 1, N)), 0)", "w[i]", "Eq(w[i], w[i])", "Eq(b, 1)", "True"],
    "conditions": ["w[i] >= 0", "Complementary(w[i], 1)", "Complementary(w[i], xi[mu])", "Complementary(w[i], -1 - w[i])"],
}


def _spoil(draw: Draw, case: Case) -> Case:
    """Do one thing to a declaration, or to its point, that may make it ill-formed."""
    how = draw.one(text=0.35, word=0.25, more=0.2, value=0.15, dps=0.05)
    words = {**WORDS, **case.words}
    if how == "text":
        places = [(k, n, a, b) for k, part in case.parts.items() for n, e in enumerate(part) for a, b in _TEXT if a in e]
        if places:
            key, n, old, new = draw.choice(places)
            entries = list(case.parts[key])
            entries[n] = entries[n].replace(old, new, 1)
            return replace(case, parts={**case.parts, key: tuple(entries)}, spoiled=f"{old} -> {new}")
    if how == "word":
        choices = [(k, v) for k, v in _WORDS_SPOILED if k in case.used]
        if choices:
            name, text = draw.choice(choices)
            order = {k: words[k] for k in ("w", "v", "xi", "b") if k in words and "w[i]/N" in text}
            return replace(case, words={**order, **case.words, name: text}, spoiled=f"{name} = {text}")
    if how == "more":
        key = draw.choice([k for k in _MORE if (k in ("equations", "conditions", "fixed") if case.system else k in ("minimize", "subject_to", "fixed"))])
        entry = draw.choice(_MORE[key])
        kept = () if draw.maybe(0.2) else case.parts.get(key, ())
        return replace(case, parts={**case.parts, key: (*kept, entry)}, spoiled=f"{key}: {entry}")
    point = {**case.point}
    if how == "dps":
        return replace(case, dps=draw.choice(["0", "-3", "'x'", "2.5", "True", "None", "1"]), values=point, spoiled="dps")
    key = draw.choice(sorted(point) or ["alpha"])
    if draw.maybe(0.2):
        point.pop(key, None)
    else:
        point[draw.choice([key, key, key, "Symbol('q')", "'alpha'", "3"])] = draw.choice(_BAD_LAWS if key in LAWS else _BAD_NUMBERS)
    return replace(case, values=point, spoiled=f"value of {key}")


__all__ = ["Case", "generate"]
