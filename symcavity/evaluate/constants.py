"""Numbers that mean the same wherever they stand: of doubles, and how often loops run that end by themselves."""

IN_DOUBLE = 15  # digits up to which numbers are computed in double
BITS = 3.33  # of a digit
TINIEST = 1e-300  # in the place of a divisor, or of the argument of a logarithm, that vanishes
LOGARITHMS = 46.0  # of unknowns, at the most, where none is given: twenty powers of ten
NEWTON = 100  # steps of Newton's method and of its kin, which converge or are lost long before
BRACKETED = 500  # steps within brackets, which double and are halved as often as doubles can be
