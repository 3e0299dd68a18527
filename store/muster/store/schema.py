"""The schema's version: refuse what is newer, bring what is older up to date.

Alembic's migrations are part of the package and run when a store opens, in one transaction, forward only. The table
that holds the version has a name of ours, so that another application's is not taken for it.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from muster.engine.ports import ForeignStoreError

VERSION_TABLE = "muster_schema_version"
MIGRATIONS = Path(__file__).with_name("migrations")


def migrate(connection: Connection) -> None:
    """Bring the schema up to date, in the caller's transaction. Raises ForeignStoreError if it is newer than known."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(config)
    found = MigrationContext.configure(
        connection, opts={"version_table": VERSION_TABLE}
    ).get_current_revision()
    known = {script.revision for script in scripts.walk_revisions()}
    if found is not None and found not in known:
        raise ForeignStoreError(
            f"the store has schema version {found}, which this version of Muster does not know: use a newer Muster"
        )
    if found != scripts.get_current_head():
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
