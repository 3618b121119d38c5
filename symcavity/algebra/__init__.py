"""Symbolic tools that know nothing of cavities."""

import gc

# what SymPy makes while it is loaded is never garbage, and looking for some takes a tenth of that time
_COLLECTS = gc.isenabled()
gc.disable()
try:
    import sympy  # noqa: F401
finally:
    if _COLLECTS:
        if not gc.get_freeze_count():  # nothing that others froze is let go
            gc.freeze()
            gc.unfreeze()  # all is in the oldest generation now, and was not looked at
        gc.enable()
