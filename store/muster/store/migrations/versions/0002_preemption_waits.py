"""What units that preempt wait for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False)


def upgrade() -> None:
    op.create_table(
        "preemption_waits",
        sa.Column("cluster_id", sa.Integer, nullable=False),
        _text("kind"),
        _text("namespace"),
        _text("name"),
        sa.Column("until_us", sa.BigInteger, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("cluster_id", "kind", "namespace", "name", name="pk_preemption_waits"),
    )
