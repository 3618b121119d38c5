"""Make the pictures of the README and of the site: ``python docs/pictures.py``.

They are kept in the repository, so that the README shows them without a build.  The equations need a TeX.
"""

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image, ImageOps
from sympy import Rational, Symbol

from symcavity import alpha, average, i
from symcavity.derivations.soft_margin import C, problem, w
from symcavity.evaluate.canvas import panel, style
from symcavity.finite.plots import BLUE, GREY, RED
from symcavity.record.derivation import Derivation
from symcavity.writing.display_form import as_shown
from symcavity.writing.printing import tex

FOLDER = Path(__file__).parent / "pictures"


def save(ax, name):
    """Write a picture as vectors, and as points for those who cannot show vectors."""
    ax.figure.savefig(FOLDER / f"{name}.svg", metadata={"Date": None})
    ax.figure.savefig(FOLDER / f"{name}.png", dpi=200)


def confronted():
    """Theory as lines, instances as points, for a soft margin at three penalties."""
    theory = problem.cavity()
    penalties = [Rational(1, 2), 2, 8]
    norm = average(w[i] ** 2)
    curve = theory.sweep({C: penalties, alpha: [Rational(k, 10) for k in range(2, 41)]}, observables=[norm])
    points = problem.sweep({C: penalties, alpha: [Rational(1, 2), 1, 2, 3, 4]}, N=200, seeds=10, observables=[norm])
    save((curve + points).plot(alpha, norm), "confronted")


def equations():
    """What the engine finds for the soft margin, typeset from its own LaTeX."""
    shown = as_shown(Derivation("", "", (), (), tuple(problem.cavity().equations))).results
    rows = " \\\\[4pt]\n".join(tex(e).replace("=", "&=", 1) for e in shown)
    source = (
        "\\documentclass{article}\\usepackage{amsmath,bm}\\pagestyle{empty}\\begin{document}\n"
        f"\\begin{{align*}}\n{rows}\n\\end{{align*}}\\end{{document}}\n"
    )
    with TemporaryDirectory() as work:
        (Path(work) / "equations.tex").write_text(source, encoding="utf-8")
        subprocess.run(["pdflatex", "-interaction=batchmode", "equations"], cwd=work, check=True)
        subprocess.run(["pdftoppm", "-r", "220", "-png", "equations.pdf", "page"], cwd=work, check=True)
        with Image.open(next(Path(work).glob("page*.png"))) as page:
            box = ImageOps.invert(page.convert("L")).getbbox()
            page.crop((box[0] - 20, box[1] - 20, box[2] + 20, box[3] + 20)).save(FOLDER / "equations.png")


def method():
    """The cavity method on a graph of two kinds: a new site, what it does to others, and what comes back."""
    with style():
        _draw_method(panel((6.4, 2.9)))


def _draw_method(ax):
    ax.axis("off")
    ax.set_xlim(-0.6, 6.6)
    ax.set_ylim(-0.75, 2.5)
    features = [(k, 0.0) for k in range(6)]
    data = [(k + 0.5, 1.7) for k in range(5)]
    for fx, fy in features:
        for dx, dy in data:
            ax.plot([fx, dx], [fy, dy], color=GREY, lw=0.4, alpha=0.6, zorder=1)
    new = (6.2, 0.0)
    for dx, dy in data:
        ax.plot([new[0], dx], [new[1], dy], color=RED, lw=0.9, ls=(0, (4, 2)), zorder=1)
    for points, colour in ((features, "white"), (data, "#dcdcdc")):
        ax.scatter(*np.array(points).T, s=230, facecolor=colour, edgecolor="black", lw=0.9, zorder=2)
    ax.scatter(*new, s=260, facecolor="white", edgecolor=RED, lw=1.6, zorder=2)
    w0, lam = Symbol("w_0"), Symbol("lambda")
    ax.text(*new, f"${tex(w0)}$", ha="center", va="center", fontsize=10, color=RED)
    ax.text(-0.55, 2.15, rf"data $\mu = 1 \ldots P$, messages ${tex(lam)}^\mu$", fontsize=10)
    ax.text(-0.55, -0.6, "features $i = 1 \\ldots N$, weights $w_i$", fontsize=10)
    ax.text(4.15, -0.6, "a new site, with fresh couplings", fontsize=10, color=RED)
    arrow = {"arrowstyle": "-|>", "color": BLUE, "lw": 1.4, "connectionstyle": "arc3,rad=0.25"}
    ax.annotate("", xy=(4.75, 1.7), xytext=(6.2, 0.2), arrowprops=arrow)
    ax.annotate("", xy=(6.05, 0.2), xytext=(4.4, 1.5), arrowprops=arrow)
    ax.text(5.25, 1.72, r"$x^\mu_0 w_0$", fontsize=10, color=BLUE)
    ax.text(3.62, 2.15, r"comes back as $\eta_0 + F_{00}\, w_0$", fontsize=10, color=BLUE)
    save(ax, "method")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for make in (equations, confronted, method):
        make()
