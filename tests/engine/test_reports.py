"""ReportPods: what a backend may say about a pod, and when it comes too late."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.engine.api import (
    BindingFailed,
    Bound,
    PhaseChanged,
    PodReport,
    Removed,
    ReportCall,
    ReportOutcome,
)
from muster.engine.ports import FailedBinding, UnitState
from muster.engine.reports import LEFT_OUT_US, LONGEST_MESSAGE, LONGEST_REASON, report
from muster.model.meta import ObjectKey
from muster.model.pod import Pod, PodStatus
from muster.validation.pod import FIRST_MOMENT_US, LAST_MOMENT_US
from tests.engine.small_cluster import (
    EVICTED,
    NOW_US,
    SECOND_US,
    SmallCluster,
    node,
    owned_by,
    pod,
    pod_group,
)

Said = Bound | BindingFailed | PhaseChanged | Removed | None
ACCEPTED, UNCHANGED, STALE = ReportOutcome.ACCEPTED, ReportOutcome.UNCHANGED, ReportOutcome.STALE
UNKNOWN_POD, INVALID = ReportOutcome.UNKNOWN_POD, ReportOutcome.INVALID


def run(
    cluster: SmallCluster, *said: Said, name: str = "p", uid: str = "uid-p", clients_evict: bool = False
) -> list[ReportOutcome]:
    call = ReportCall("default", [PodReport("default", name, uid, each) for each in said])
    return list(cluster.change(lambda mutation: report(mutation, call, clients_evict=clients_evict)))


def in_phase(phase: str, *, on: str = "n") -> Pod:
    return pod("p", on=on, status=PodStatus(phase=phase))


def scheduled(item: Pod) -> tuple[str, str, str]:
    (condition,) = item.status.conditions
    return condition.status, condition.reason, condition.message


def row_state(cluster: SmallCluster, unit: ObjectKey) -> UnitState | None:
    row = cluster.cluster.queue.get(unit)
    return None if row is None else row.state


def test_a_report_about_a_pod_that_does_not_exist_is_told_so() -> None:
    cluster = SmallCluster(pod("p"))

    assert run(cluster, Bound("n"), name="q") == [UNKNOWN_POD]


@pytest.mark.parametrize(
    "said", [Bound("n"), BindingFailed("n", "", ""), PhaseChanged("Failed", "", ""), Removed()]
)
def test_a_report_about_an_earlier_pod_of_the_same_name_is_stale_and_changes_nothing(said: Said) -> None:
    cluster = SmallCluster(pod("p"))
    before = cluster.pod("p")

    assert run(cluster, said, uid="earlier") == [STALE]
    assert cluster.pod("p") == before


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(None, id="nothing said"),
        pytest.param(Bound(""), id="bound nowhere"),
        pytest.param(BindingFailed("", "r", "m"), id="failed nowhere"),
        pytest.param(PhaseChanged("Sleeping", "", ""), id="no such phase"),
        pytest.param(Bound("No_Node"), id="on what is no node's name"),
        pytest.param(Bound("n" * 254), id="on a name that is too long"),
        pytest.param(BindingFailed("a\0", "r", "m"), id="NUL in a name"),
        pytest.param(BindingFailed("n", "r\0", "m"), id="NUL in a reason"),
        pytest.param(BindingFailed("n", "r", "m" * (LONGEST_MESSAGE + 1)), id="a message without end"),
        pytest.param(PhaseChanged("Pending", "r" * (LONGEST_REASON + 1), ""), id="a reason without end"),
        pytest.param(PhaseChanged("Pending", "", "\0"), id="NUL in a message"),
        pytest.param(PhaseChanged("Pending", "", "", LAST_MOMENT_US + 1), id="after the year 9999"),
        pytest.param(PhaseChanged("Pending", "", "", FIRST_MOMENT_US - 1), id="before the year 1"),
    ],
)
def test_a_report_that_says_nothing_usable_is_invalid(said: Said) -> None:
    cluster = SmallCluster(pod("p"))
    revision = cluster.cluster.state.revision

    assert run(cluster, said) == [INVALID]
    assert cluster.cluster.state.revision == revision


def test_bound_is_a_fact_even_on_a_node_that_is_not_known() -> None:
    cluster = SmallCluster(pod("p"))

    assert run(cluster, Bound("nowhere")) == [ACCEPTED]

    assert cluster.pod("p").node_name == "nowhere"
    assert scheduled(cluster.pod("p"))[0] == "True"
    assert row_state(cluster, cluster.pod("p").key) is None


def test_bound_elsewhere_moves_the_pod() -> None:
    cluster = SmallCluster(node("a"), node("b"), pod("p", on="a"))

    assert run(cluster, Bound("b")) == [ACCEPTED]

    assert [each.name for each in cluster.cluster.state.pods_on("b")] == ["p"]
    assert cluster.cluster.state.pods_on("a") == []


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_does_not_move(phase: str) -> None:
    cluster = SmallCluster(node("a"), node("b"), in_phase(phase, on="a"))

    assert run(cluster, Bound("b")) == [STALE]
    assert cluster.pod("p").node_name == "a"


def test_bound_where_the_pod_is_already_changes_nothing() -> None:
    cluster = SmallCluster(pod("p"))
    run(cluster, Bound("n"))
    revision = cluster.cluster.state.revision

    assert run(cluster, Bound("n")) == [UNCHANGED]
    assert cluster.cluster.state.revision == revision


def test_a_failed_binding_gives_the_pod_back_and_leaves_the_node_out_for_five_minutes() -> None:
    cluster = SmallCluster(node("n"), pod("p"))
    run(cluster, Bound("n"))

    assert run(cluster, BindingFailed("n", "DiskFull", "no space")) == [ACCEPTED]

    given_back = cluster.pod("p")
    assert given_back.node_name == ""
    assert scheduled(given_back) == ("False", "DiskFull", "no space")
    assert cluster.cluster.failed_bindings == {given_back.ordinal: {"n": NOW_US + LEFT_OUT_US}}
    assert LEFT_OUT_US == 300 * SECOND_US


def test_a_failed_binding_is_stored_with_its_time_and_taken_out_when_it_is_forgotten() -> None:
    cluster = SmallCluster(node("n"), pod("p"), pod("q", on="n"))
    run(cluster, Bound("n"), BindingFailed("n", "", ""))
    ordinal = cluster.pod("p").ordinal
    first = cluster.cluster.take_writes()

    cluster.cluster.failed_bindings.forgive(NOW_US + LEFT_OUT_US)
    second = cluster.cluster.take_writes()

    assert first is not None
    assert second is not None
    row = FailedBinding(ordinal, "n", NOW_US + LEFT_OUT_US)
    assert (first.failed_binding_puts, first.failed_binding_removals) == ({row[:2]: row}, set())
    assert (second.failed_binding_puts, second.failed_binding_removals) == ({}, {row[:2]})


def test_a_failed_binding_sends_the_unit_to_backoff() -> None:
    group = pod_group("g", minimum=2)
    cluster = SmallCluster(node("n"), group, pod("p", group="g", on="n"), pod("q", group="g", on="n"))

    run(cluster, BindingFailed("n", "DiskFull", "no space"))

    row = cluster.cluster.queue.get(group.key)
    assert row is not None
    assert (row.state, row.attempts, row.not_before_us) == (UnitState.BACKOFF, 1, NOW_US + SECOND_US)
    assert cluster.cluster.queue.pop() is None
    assert cluster.cluster.queue.due(row.not_before_us)


def test_a_unit_that_a_failed_binding_leaves_short_is_gated_as_any_other() -> None:
    group = pod_group("g", minimum=2)
    cluster = SmallCluster(group, pod("p", group="g", on="n"))

    run(cluster, BindingFailed("n", "", ""))

    assert row_state(cluster, group.key) is UnitState.GATED


def test_a_unit_in_flight_goes_round_again_after_a_failed_binding() -> None:
    group = pod_group("g")
    cluster = SmallCluster(group, pod("p", group="g", on="n"), pod("q", group="g"))
    assert cluster.cluster.queue.pop() is not None

    run(cluster, BindingFailed("n", "", ""))

    assert row_state(cluster, group.key) is UnitState.IN_FLIGHT
    assert cluster.cluster.queue.landed(group.key)


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(in_phase("Pending", on="other"), id="on another node"),
        pytest.param(in_phase("Pending", on=""), id="on no node"),
        pytest.param(in_phase("Running"), id="running"),
        pytest.param(in_phase("Succeeded"), id="terminal"),
    ],
)
def test_a_failed_binding_is_stale_unless_the_pod_waits_on_that_node(item: Pod) -> None:
    cluster = SmallCluster(item)

    assert run(cluster, BindingFailed("n", "", "")) == [STALE]
    assert cluster.pod("p") is item


def test_a_leaving_pod_whose_binding_failed_has_nothing_to_wait_for() -> None:
    cluster = SmallCluster(replace(pod("p", on="n"), deletion_us=NOW_US + SECOND_US))

    assert run(cluster, BindingFailed("n", "", "")) == [ACCEPTED]
    assert cluster.names() == set()


def test_a_binding_reported_after_all_ends_the_exclusion_of_that_node() -> None:
    cluster = SmallCluster(pod("p", on="n"))

    run(cluster, BindingFailed("n", "", ""), Bound("n"))

    assert cluster.cluster.failed_bindings == {}


def test_a_phase_sets_start_time_reason_and_message() -> None:
    cluster = SmallCluster(in_phase("Pending"))

    assert run(cluster, PhaseChanged("Running", "Started", "all containers run", 77)) == [ACCEPTED]

    status = cluster.pod("p").status
    assert (status.phase, status.reason, status.message) == ("Running", "Started", "all containers run")
    assert status.start_us == 77


def test_a_phase_without_a_start_time_keeps_the_one_that_is_known() -> None:
    cluster = SmallCluster(pod("p", on="n", status=PodStatus(phase="Running", start_us=77)))

    run(cluster, PhaseChanged("Succeeded", "", ""))

    assert cluster.pod("p").status == PodStatus(phase="Succeeded", start_us=77)


@pytest.mark.parametrize(
    ("old", "new"),
    [("Running", "Pending"), ("Succeeded", "Running"), ("Failed", "Succeeded"), ("Unknown", "Pending")],
)
def test_a_phase_never_goes_back(old: str, new: str) -> None:
    cluster = SmallCluster(in_phase(old))

    assert run(cluster, PhaseChanged(new, "", "")) == [STALE]
    assert cluster.pod("p").status.phase == old


def test_a_pod_without_a_node_cannot_be_running() -> None:
    cluster = SmallCluster(pod("p"))

    assert run(cluster, PhaseChanged("Running", "", "")) == [STALE]


def test_a_phase_that_is_known_already_changes_nothing() -> None:
    cluster = SmallCluster(in_phase("Running"))

    assert run(cluster, PhaseChanged("Running", "", "")) == [UNCHANGED]


def test_a_finished_pod_makes_room() -> None:
    cluster = SmallCluster(node("n"), in_phase("Running"))

    run(cluster, PhaseChanged("Succeeded", "", ""))

    assert cluster.cluster.feed.flush().nodes.free.max() == 8000


def test_a_leaving_pod_that_ends_by_itself_goes_without_waiting_for_its_grace() -> None:
    cluster = SmallCluster(replace(in_phase("Running"), deletion_us=NOW_US + SECOND_US))

    assert run(cluster, PhaseChanged("Succeeded", "", "")) == [ACCEPTED]
    assert cluster.names() == set()


def test_where_clients_evict_an_evicted_pod_that_ended_stays_until_it_is_reported_gone() -> None:
    evicted = replace(pod("p", on="n", status=EVICTED), deletion_us=NOW_US + SECOND_US)
    cluster = SmallCluster(evicted)

    run(cluster, PhaseChanged("Failed", "", ""), clients_evict=True)
    assert cluster.names() == {"p"}
    assert run(cluster, Removed(), clients_evict=True) == [ACCEPTED]
    assert cluster.names() == set()


@pytest.mark.parametrize("deletion_us", [None, NOW_US + SECOND_US])
def test_a_removed_pod_goes_with_or_without_a_deletion_mark(deletion_us: int | None) -> None:
    item = replace(in_phase("Running"), deletion_us=deletion_us)
    cluster = SmallCluster(item, pod("owned", owners=(owned_by(item),)))

    assert run(cluster, Removed()) == [ACCEPTED]
    assert cluster.names() == set()
    assert cluster.cluster.leaving_until == {}


def test_reports_about_one_pod_apply_in_order_in_one_revision() -> None:
    cluster = SmallCluster(pod("p"))
    revision = cluster.cluster.state.revision

    outcomes = run(cluster, Bound("n"), PhaseChanged("Running", "", ""), Removed(), Bound("n"))

    assert outcomes == [ACCEPTED, ACCEPTED, ACCEPTED, UNKNOWN_POD]
    assert cluster.cluster.state.revision == revision + 1


def test_pods_that_stand_alike_and_are_reported_alike_share_their_status() -> None:
    status = PodStatus()
    cluster = SmallCluster(*(pod(name, on="n", status=status) for name in ("p", "q", "r")))
    said = {
        "p": PhaseChanged("Running", "", ""),
        "q": PhaseChanged("Running", "", ""),
        "r": PhaseChanged("Failed", "", ""),
    }
    call = ReportCall("default", [PodReport("default", name, "", each) for name, each in said.items()])

    outcomes = cluster.change(lambda mutation: report(mutation, call))

    p, q, r = (cluster.pod(name).status for name in said)
    assert outcomes == (ACCEPTED,) * 3
    assert p is q
    assert (p.phase, r.phase) == ("Running", "Failed")
