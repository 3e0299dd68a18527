"""Commits gangs to the store at the URL in its argument until it is killed; prints each revision once it is durable."""

import sys
from dataclasses import replace

from muster.engine.ports import QueuedUnit, UnitState
from muster.model.meta import POD_GROUP, ObjectKey
from muster.store.store import open_store
from tests.contract.ledger import Ledger, gang

GANG_SIZE = 40

if __name__ == "__main__":
    ledger = Ledger(open_store(sys.argv[1]))
    while True:
        writes = ledger.writes()
        name = f"gang-{ledger.revision}"
        made = ledger.add(writes, gang(name, GANG_SIZE))
        unit = QueuedUnit(ObjectKey(POD_GROUP, "default", name), UnitState.ACTIVE)
        writes.unit_puts[unit.key] = unit
        ledger.commit(writes)
        print(ledger.revision, flush=True)  # noqa: T201

        writes = ledger.writes()
        ledger.change(writes, [replace(pod, node_name=f"node-{place}") for place, pod in enumerate(made)])
        writes.unit_removals.add(unit.key)
        ledger.commit(writes)
        print(ledger.revision, flush=True)  # noqa: T201
