"""Whether one pod bears on where another may run, as the filters of this package read other pods.

That is so if a required affinity or anti-affinity term or a spread constraint of the one selects the other, or if the
other keeps it away by a term of its own. Room and host ports are not asked for here.
"""

from __future__ import annotations

from muster.core.signature import Signature
from muster.plugins.pod_terms import terms_of
from muster.plugins.topology_spread import FILTERING, constraints_of


def bears_on(other: Signature, pod: Signature) -> bool:
    """Whether `other`, running somewhere, may change which nodes admit `pod`."""
    terms = terms_of(pod)
    if any(term.matches(other) for term in (*terms.affinity, *terms.anti_affinity)):
        return True
    if any(each.pods.selects(other) for each in constraints_of(pod, FILTERING)):
        return True
    return any(term.matches(pod) for term in terms_of(other).anti_affinity)
