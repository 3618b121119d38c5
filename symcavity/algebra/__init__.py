"""Symbolic tools that know nothing of cavities."""

import gc

# what SymPy makes while it is loaded is never garbage, and looking for some takes a tenth of that time
_COLLECTS = gc.isenabled()
gc.disable()
try:
    import sympy  # noqa: F401
finally:
    if _COLLECTS:
        gc.enable()
