"""What is done to a declaration before the method reads it: one file a rewriting, in the order of the tuple."""

from symcavity.model.rewriting import Rewriting
from symcavity.model.rewritings.clock import Clock
from symcavity.model.rewritings.coincident import Coincident
from symcavity.model.rewritings.combined import Combined
from symcavity.model.rewritings.domains import Domains
from symcavity.model.rewritings.emissions import Emissions
from symcavity.model.rewritings.inverses import Inverses
from symcavity.model.rewritings.kernels import Kernels
from symcavity.model.rewritings.kinks import Kinks
from symcavity.model.rewritings.means import Means
from symcavity.model.rewritings.norms import Norms
from symcavity.model.rewritings.proportion import Proportion
from symcavity.model.rewritings.redundant import Redundant
from symcavity.model.rewritings.roots import Roots
from symcavity.model.rewritings.spellings import Spellings
from symcavity.model.rewritings.sums import Sums
from symcavity.model.rewritings.units import Units

REWRITINGS: tuple[type[Rewriting], ...] = (
    *(Sums, Spellings, Inverses, Proportion, Kinks, Units, Domains, Redundant),
    *(Roots, Kernels, Clock, Coincident, Combined, Emissions, Norms, Means),
)
