"""The record of a replayed trace: decisions made again come out equal.

MUSTER_TRACE_LIMIT says how many gangs of the example of the documents are replayed (100 if it does not; all 240 make
more than a thousand decisions). MUSTER_TRACE_NODES and MUSTER_TRACE_GANGS name the files of another trace.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

from muster.cli.main import muster
from tests.simulation.asking import Simulated, code
from tests.simulation.test_rerun import again

EXAMPLE = Path(__file__).resolve().parents[2] / "docs/examples/replay"
AT_ONCE = 200
LEAST = 60


def replayed(cluster: Simulated) -> None:
    nodes = os.environ.get("MUSTER_TRACE_NODES", str(EXAMPLE / "nodes.csv"))
    gangs = os.environ.get("MUSTER_TRACE_GANGS", str(EXAMPLE / "gangs.csv"))
    limit = os.environ.get("MUSTER_TRACE_LIMIT", "100")
    server = ["--server", cluster.service.address, "--cluster", cluster.name]
    trace = ["replay", "--nodes", nodes, "--gangs", gangs, "--limit", limit]
    result = CliRunner().invoke(muster, [*server, *trace])
    assert result.exit_code == 0, result.output


@pytest.mark.timeout(1_800)
def test_decisions_of_a_replayed_trace_come_out_equal(cluster: Simulated) -> None:
    replayed(cluster)
    made = [each for each in cluster.list_decisions() if each.input_digest]

    with ThreadPoolExecutor(AT_ONCE) as pool:
        reruns = list(pool.map(lambda decision: again(cluster, decision), made))

    told = [
        f"{decision.id} {decision.unit.name} {code(decision)}: {list(rerun.differences)} {rerun.not_possible}"
        for decision, rerun in zip(made, reruns, strict=True)
        if not (rerun.equal and rerun.same_input)
    ]
    assert not told
    assert len(reruns) >= LEAST
