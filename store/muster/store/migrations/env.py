"""Runs the migrations on the connection, and in the transaction, that `schema.migrate` passes in."""

from alembic import context

from muster.store.schema import VERSION_TABLE
from muster.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
