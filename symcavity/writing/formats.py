"""The formats that a derivation is written in: one entry for each; methods and options of the command line follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from symcavity.record.derivation import Derivation


@dataclass(frozen=True)
class Format:
    """One format.

    Attributes
    ----------
    name : str
        Its name: ``Derivation.to_<name>`` returns the text, ``symcavity derive --<name> FILE`` writes it.
    says : str
        What it gives, for the help of the command line.
    function : str
        ``module:function`` of the writer, which takes a derivation (loaded where it is used).
    alone : bool
        Whether the option of the command line may stand without a file, for the standard output.
    verified : bool
        Whether the writer takes what the witnesses say as ``checked``.
    """

    name: str
    says: str
    function: str
    alone: bool = False
    verified: bool = False

    def write(self, derivation: Derivation, **options: Any) -> str:
        """Return a derivation in this format."""
        module, _, function = self.function.partition(":")
        writer: Callable[..., str] = getattr(import_module(f"symcavity.writing.{module}"), function)
        return writer(derivation, **options)


FORMATS = {
    one.name: one
    for one in (
        Format("text", "write plain text for a terminal", "text:derivation_text"),
        Format("latex", "write a complete LaTeX document", "latex:document"),
        Format("html", "write a self-contained page", "html:page"),
        Format("json", "write a record for machines, with verdicts", "exchange:derivation_json", True, True),
    )
}
