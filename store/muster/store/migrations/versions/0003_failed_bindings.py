"""Nodes that are left out for a pod because its binding there failed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "failed_bindings",
        sa.Column("cluster_id", sa.Integer, nullable=False),
        sa.Column("ordinal", sa.BigInteger, nullable=False),
        sa.Column("node_name", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("until_us", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("cluster_id", "ordinal", "node_name", name="pk_failed_bindings"),
    )
