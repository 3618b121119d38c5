"""The two kinds of sites of a bipartite instance, each by the other."""

from symcavity.model.kinds import DATUM, FEATURE

OTHER = {FEATURE: DATUM, DATUM: FEATURE}
