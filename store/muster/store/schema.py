"""The schema's version: refuse what is newer, bring what is older up to date.

Alembic's migrations are part of the package and run when a store opens, in one transaction, forward only. The table
that holds the version has a name of ours, so that another application's is not taken for it. Migrations lie in
`migrations/versions` as VERSION_what.py, in the order of their versions. Alembic takes half a second to load, so it
is left alone where there is nothing to migrate.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import ColumnClause, Connection, column, inspect, select, table

from muster.engine.ports import ForeignStoreError

VERSION_TABLE = "muster_schema_version"
MIGRATIONS = Path(__file__).with_name("migrations")
_version: ColumnClause[str] = column("version_num")


def migrate(connection: Connection) -> None:
    """Bring the schema up to date, in the caller's transaction. Raises ForeignStoreError if it is newer than known."""
    known = sorted(path.name.partition("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*_*.py"))
    found = stored_version(connection)
    if found is not None and found not in known:
        raise ForeignStoreError(
            f"the store has schema version {found}, which this version of Muster does not know: use a newer Muster"
        )
    if found != known[-1]:
        _upgrade(connection)


def stored_version(connection: Connection) -> str | None:
    """The version that the store says it has; None for a new one."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found: str | None = connection.execute(select(_version).select_from(table(VERSION_TABLE))).scalar()
    return found


def _upgrade(connection: Connection) -> None:
    from alembic import command  # noqa: PLC0415 - see above
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
