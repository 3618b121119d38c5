"""Inventories for links to the pages of other packages, of the names that this reference uses; nothing is fetched.

Sphinx would fetch an inventory of each package from the network. These few names have addresses that follow a rule.
"""

import zlib

PAGES = {
    "sympy": ("https://docs.sympy.org/latest/", {
        "sympy.core.expr.Expr": "modules/core.html#$", "sympy.core.symbol.Symbol": "modules/core.html#$",
        "sympy.core.relational.Equality": "modules/core.html#$",
        "sympy.matrices.dense.Matrix": "modules/matrices/dense.html#$",
        "sympy.logic.boolalg.Boolean": "modules/logic.html#$", "sympy.core.basic.Basic": "modules/core.html#$",
    }),
    "numpy": ("https://numpy.org/doc/stable/", {
        f"numpy.{name}": "reference/generated/$.html#$" for name in ("ndarray", "random.Generator")
    }),
    "scipy": ("https://docs.scipy.org/doc/scipy/", {
        f"scipy.{name}": "reference/generated/$.html#$" for name in ("optimize.OptimizeResult", "sparse.csr_array")
    }),
    "pandas": ("https://pandas.pydata.org/docs/", {
        f"pandas.{name}": "reference/api/$.html#$" for name in ("DataFrame", "Series")
    }),
}  # fmt: skip


def write(folder):
    """Write the inventories, and return the mapping that intersphinx takes."""
    folder.mkdir(parents=True, exist_ok=True)
    mapping = {}
    for package, (address, names) in PAGES.items():
        head = f"# Sphinx inventory version 2\n# Project: {package}\n# Version: \n"
        head += "# The remainder of this file is compressed using zlib.\n"
        rows = "".join(f"{name} py:class 1 {place.replace('$', name)} -\n" for name, place in names.items())
        file = folder / f"{package}.inv"
        file.write_bytes(head.encode() + zlib.compress(rows.encode()))
        mapping[package] = (address, str(file))
    return mapping


__all__ = ["write"]
