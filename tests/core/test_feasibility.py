import pytest

from muster.core.decision import Status
from muster.core.feasibility import Tally, group_status

SUCCESS, WAIT = Status.SUCCESS, Status.WAIT
UNSCHEDULABLE, UNRESOLVABLE = Status.UNSCHEDULABLE, Status.UNSCHEDULABLE_AND_UNRESOLVABLE


@pytest.mark.parametrize(
    ("required", "satisfied", "remaining", "unschedulable", "status"),
    [
        pytest.param(1, 1, 0, 0, SUCCESS, id="met"),
        pytest.param(1, 5, 3, 2, SUCCESS, id="more-than-met"),
        pytest.param(0, 0, 0, 0, SUCCESS, id="nothing-required"),
        pytest.param(3, 1, 2, 0, WAIT, id="just-in-reach"),
        pytest.param(3, 0, 5, 0, WAIT, id="untouched"),
        pytest.param(3, 1, 2, 4, WAIT, id="failures-beside-enough-remaining"),
        pytest.param(3, 1, 1, 1, UNSCHEDULABLE, id="with-removals-just-in-reach"),
        pytest.param(3, 0, 0, 3, UNSCHEDULABLE, id="all-failed"),
        pytest.param(3, 1, 1, 0, UNRESOLVABLE, id="too-few-children"),
        pytest.param(3, 0, 0, 2, UNRESOLVABLE, id="with-removals-out-of-reach"),
        pytest.param(1, 0, 0, 0, UNRESOLVABLE, id="no-children"),
    ],
)
def test_status_follows_from_the_counters(
    required: int, satisfied: int, remaining: int, unschedulable: int, status: Status
) -> None:
    assert group_status(required, satisfied, remaining, unschedulable) is status


def test_a_tally_moves_children_from_remaining_to_where_they_ended() -> None:
    tally = Tally(required=2, remaining=5)

    tally.place(1)
    tally.fail(2, UNSCHEDULABLE)
    tally.fail(1, UNRESOLVABLE)

    assert tally == Tally(2, satisfied=1, remaining=1, unschedulable=2, unresolvable=1)
    assert tally.status is WAIT
    assert tally.spare == 0
