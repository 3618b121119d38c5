"""How the names of quantities are printed."""

from __future__ import annotations

_GREEK = frozenset(
    (
        *("alpha", "beta", "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "kappa", "lambda"),
        *("mu", "nu", "xi", "pi", "rho", "sigma", "tau", "phi", "psi", "chi", "omega"),
        *("Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Phi", "Psi", "Omega"),
    )
)


def latex_name(name: str) -> str:
    """LaTeX of a family's name: Greek words become letters, digits and tails become subscripts."""
    if name.isdigit():
        return f"({name})"
    head, _, tail = name.partition("_")
    base = head.rstrip("0123456789")
    digits = head[len(base) :]
    tex = f"\\{base}" if base in _GREEK else base if len(base) == 1 else f"\\mathrm{{{base}}}"
    below = ",".join(part for part in (digits, tail) if part)
    return f"{tex}_{{({below})}}" if below else tex


__all__ = ["latex_name"]
