"""What the migrations make is what `tables.py` says."""

import subprocess
import sys
from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, create_engine, text

from muster.store.schema import VERSION_TABLE
from muster.store.store import open_store
from muster.store.tables import metadata

DESCRIPTIONS = {
    "sqlite": "SELECT type, tbl_name, name, sql FROM sqlite_master ORDER BY 1, 2, 3",
    "postgresql": """
        SELECT table_name, column_name, ordinal_position, data_type, is_nullable, collation_name, column_default
          FROM information_schema.columns WHERE table_schema = 'public'
        UNION ALL
        SELECT tablename, indexname, 0, indexdef, '', '', '' FROM pg_indexes WHERE schemaname = 'public'
        UNION ALL
        SELECT relname, '', 0, reloptions::text, '', '', '' FROM pg_class
         WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
        ORDER BY 1, 3, 2
    """,
}


def _description(connection: Connection) -> list[tuple[object, ...]]:
    """The schema as the database itself describes it, without the table of its version."""
    query = text(DESCRIPTIONS[connection.dialect.name])
    rows = [tuple(row) for row in connection.execute(query)]
    return [
        tuple(" ".join(part.split()) if isinstance(part, str) else part for part in row)
        for row in rows
        if not any(isinstance(part, str) and VERSION_TABLE in part for part in row)
    ]


def test_the_migrated_schema_is_that_of_the_tables(store_url: str) -> None:
    open_store(store_url).close()
    engine = create_engine(store_url)
    with engine.begin() as connection:
        migrated = _description(connection)
        metadata.drop_all(connection)
        metadata.create_all(connection)
        described = _description(connection)
    engine.dispose()

    assert migrated == described


def test_alembic_finds_nothing_to_migrate(store_url: str) -> None:
    open_store(store_url).close()
    engine = create_engine(store_url)
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"version_table": VERSION_TABLE, "compare_type": True}
        )
        differences = compare_metadata(context, metadata)
    engine.dispose()

    assert differences == []


def test_opening_again_migrates_nothing(store_url: str) -> None:
    open_store(store_url).close()

    open_store(store_url).close()

    engine = create_engine(store_url)
    with engine.connect() as connection:
        versions = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalars().all()  # noqa: S608
    engine.dispose()
    assert versions == ["0003"]


def test_a_path_with_a_percent_sign_and_a_space_is_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "100% of it"
    folder.mkdir()

    open_store(f"sqlite:///{folder}/muster.db").close()

    assert (folder / "muster.db").exists()


def test_a_store_that_is_up_to_date_opens_without_alembic_and_an_embedded_one_without_a_driver(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    open_store(url).close()
    program = (
        "import sys; from muster.store.store import open_store; open_store(sys.argv[1]).close();"
        "print(*sorted({'alembic', 'psycopg'}.intersection(sys.modules)))"
    )

    loaded = subprocess.run([sys.executable, "-c", program, url], capture_output=True, text=True, check=True)

    assert loaded.stdout.split() == []
