"""`serve` in a process of its own over an engine in memory: what the life cycle needs, and nothing that is stored."""

import sys

from muster.app.lifecycle import serve
from muster.app.settings import InvalidSettingsError, Settings, load_settings
from muster.engine.api import SchedulingEngine
from muster.engine.ports import ForeignStoreError
from muster.engine.telemetry_port import EngineTelemetry
from tests.fakes.engine import FakeEngine

FOREIGN_STORE = "sqlite:///foreign.db"


async def make_engine(settings: Settings, telemetry: EngineTelemetry) -> SchedulingEngine:
    if settings.store == FOREIGN_STORE:
        raise ForeignStoreError("the database is of a newer Muster:\nversion 9")
    return FakeEngine()


def main() -> int:
    try:
        settings = load_settings(dict(each.split("=", 1) for each in sys.argv[1:]))
    except InvalidSettingsError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return serve(settings, make_engine)


if __name__ == "__main__":
    raise SystemExit(main())
