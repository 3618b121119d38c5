"""The record of a derivation, with the verbs that print and judge it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from symcavity.errors import ValuesError
from symcavity.model.content import without
from symcavity.record.derivation import Derivation as DerivationData
from symcavity.record.derivation import Step as StepData
from symcavity.record.derivation import Verdict
from symcavity.record.derivation import Verification as VerificationData
from symcavity.record.verbs import with_verbs


class Step(StepData):
    """One step of a derivation; :class:`symcavity.record.derivation.Step` has its attributes."""

    def verdicts(self, dps: int = 50) -> list[Verdict]:
        """Run the checks of this step, to ``dps`` digits where they are numerical."""
        from symcavity.witness.judge import judge

        return judge(self, dps)

    def __str__(self) -> str:
        from symcavity.writing.text import step_text

        return step_text(self)

    def _repr_latex_(self) -> str:
        from symcavity.writing.latex import step_latex

        return step_latex(self)


class Verification(VerificationData):
    """The outcome of :meth:`Derivation.verify`; truthy if no claim failed."""

    def __str__(self) -> str:
        from symcavity.writing.text import verification_text

        return verification_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from symcavity.writing.html import verification_html

        return verification_html(self)


@without("of", "replaced")
class Derivation(DerivationData):
    """An ordered record of steps, which renders as a paper and checks itself.

    :class:`symcavity.record.derivation.Derivation` has its attributes.

    Examples
    --------
    >>> from symcavity.derivations import gardner
    >>> derivation = gardner.problem.cavity().derivation
    >>> print(derivation['feature.effective_law'].claims[0])
    w[0] = eta_0 + S_lambda*alpha*w[0] + I[0]
    >>> document = derivation.to_latex()
    """

    @classmethod
    def of(cls, found: DerivationData) -> Derivation:
        """The same record, with the verbs."""
        return replace(with_verbs(cls, found), steps=tuple(with_verbs(Step, step) for step in found.steps))

    @classmethod
    def from_json(cls, source: Any) -> Derivation:
        """Read what :meth:`to_json` wrote; nothing in it is evaluated. ``verify()`` judges the claims that are read."""
        from symcavity.writing.exchange import read_derivation

        return cls.of(read_derivation(source))

    def verify(self, dps: int = 50, simulation: Any = None) -> Verification:
        """Check every claim by whatever applies.

        Parameters
        ----------
        dps : int
            Digits of the numerical checks.
        simulation : Simulation, optional
            A simulation of the same declaration: claims about averages get a z-score as a further witness.
        """
        from symcavity.witness.judge import verify

        return Verification(verify(self, dps, simulation))

    def to(self, name: str, detail: str = "full", **options: Any) -> str:
        """Return the derivation in one of the formats of :data:`symcavity.writing.formats.FORMATS`.

        Parameters
        ----------
        name : str
            ``'text'``, ``'latex'``, ``'html'`` or ``'json'``.
        detail : str
            ``'full'``, or ``'paper'``: without the minimum, stability, message passing and a second way to the
            results, and with the cavities of further kinds in short.

        Raises
        ------
        ValuesError
            For a format that is not in the table, or another detail.
        """
        from symcavity.writing.brief import in_brief
        from symcavity.writing.formats import FORMATS

        if detail not in ("full", "paper"):
            raise ValuesError(f"The detail is {detail!r:.40}.", "full, paper")
        if detail == "paper":
            return Derivation.of(in_brief(self)).to(name, **options)
        if name not in FORMATS:
            raise ValuesError(f"The format is {name!r:.40}.", ", ".join(FORMATS))
        if FORMATS[name].verified and "checked" not in options:
            options["checked"] = self.verify()
        return FORMATS[name].write(self, **options)

    def to_latex(self, detail: str = "full", *, preamble: bool = True) -> str:
        r"""Return a complete LaTeX document (amsmath and bm only); ``detail='paper'`` is half as long.

        With ``preamble=False`` it is what stands between ``\begin{document}`` and ``\end{document}``, without a title:
        a part to be read into another document.
        """
        return self.to("latex", detail, preamble=preamble)

    def to_html(self, detail: str = "full") -> str:
        """Return a self-contained HTML page."""
        return self.to("html", detail)

    def to_json(self, *, verify: bool = True, dps: int = 50) -> str:
        """Return a record for machines: claims, reasons, declaration, and the verdicts of ``verify(dps)``."""
        return self.to("json", checked=self.verify(dps) if verify else None)

    def to_text(self, detail: str = "full") -> str:
        """Return the derivation as plain text for a terminal."""
        return self.to("text", detail)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_html()
