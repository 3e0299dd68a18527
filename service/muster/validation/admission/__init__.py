"""From what a client sent to what is stored: defaults, priorities, immutable fields, preconditions."""

from muster.validation.admission.admit import admit, admit_batch, create_batch
from muster.validation.admission.context import AdmissionContext, SpecMemo
from muster.validation.admission.groups import create_group
from muster.validation.admission.pods import create_pod, create_run, new_pod
from muster.validation.admission.priority_classes import PriorityClasses
from muster.validation.admission.results import Admitted, Answer, Conflict, NewPods, Outcome, Rejected

__all__ = [
    "AdmissionContext",
    "Admitted",
    "Answer",
    "Conflict",
    "NewPods",
    "Outcome",
    "PriorityClasses",
    "Rejected",
    "SpecMemo",
    "admit",
    "admit_batch",
    "create_batch",
    "create_group",
    "create_pod",
    "create_run",
    "new_pod",
]
