"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def _binary(name: str) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary, nullable=False)


def _cluster() -> sa.Column[int]:
    return sa.Column("cluster_id", sa.Integer, nullable=False)


def _key(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*columns, name=f"pk_{table}")


def _unique(table: str, *columns: str) -> sa.UniqueConstraint:
    return sa.UniqueConstraint(*columns, name=f"uq_{table}_{'_'.join(columns)}")


def upgrade() -> None:
    _clusters_and_leases()
    _pods()
    _objects()
    _queue()
    _decisions()
    _log()


def _clusters_and_leases() -> None:
    op.create_table(
        "clusters",
        sa.Column("id", sa.Integer, nullable=False),
        _text("name"),
        _number("revision"),
        _number("compacted_revision"),
        _key("clusters", "id"),
        _unique("clusters", "name"),
    )
    op.create_table(
        "leases",
        _text("cluster"),
        _text("owner"),
        _number("token"),
        _number("commits"),
        sa.Column("expires_us", sa.BigInteger, nullable=True),
        _key("leases", "cluster"),
    )


def _pods() -> None:
    for name in ("pod_specs", "pod_metadata", "pod_statuses"):
        op.create_table(
            name,
            _cluster(),
            _number("id"),
            _binary("digest"),
            _text("body"),
            _key(name, "cluster_id", "id"),
            _unique(name, "cluster_id", "digest"),
        )
    op.create_table(
        "pods",
        _cluster(),
        _number("ordinal"),
        _text("namespace"),
        _text("name"),
        _text("uid"),
        _number("resource_version"),
        _number("generation"),
        _number("creation_us"),
        sa.Column("deletion_us", sa.BigInteger, nullable=True),
        sa.Column("deletion_grace_seconds", sa.BigInteger, nullable=True),
        _text("group_name"),
        _text("gates"),
        _text("node_name"),
        _number("spec_id"),
        _number("metadata_id"),
        _number("status_id"),
        _key("pods", "cluster_id", "ordinal"),
        _unique("pods", "cluster_id", "namespace", "name"),
        sqlite_with_rowid=False,
        postgresql_with={"fillfactor": 50},
    )


def _objects() -> None:
    for name in (
        "nodes",
        "pod_groups",
        "composite_pod_groups",
        "workloads",
        "priority_classes",
        "disruption_budgets",
    ):
        op.create_table(
            name,
            _cluster(),
            _text("namespace"),
            _text("name"),
            _text("body"),
            _key(name, "cluster_id", "namespace", "name"),
        )


def _queue() -> None:
    op.create_table(
        "queue_units",
        _cluster(),
        _text("kind"),
        _text("namespace"),
        _text("name"),
        sa.Column("state", sa.SmallInteger, nullable=False),
        _number("priority"),
        _number("since_us"),
        sa.Column("attempts", sa.Integer, nullable=False),
        _number("not_before_us"),
        _number("last_attempt_us"),
        _text("reasons"),
        _text("message"),
        _key("queue_units", "cluster_id", "kind", "namespace", "name"),
    )
    for name in ("pending_pod_groups", "pending_pod_group_members"):
        op.create_table(
            name,
            _cluster(),
            _text("kind"),
            _text("namespace"),
            _text("name"),
            _text("missing_kind"),
            _text("missing_namespace"),
            _text("missing_name"),
            _key(name, "cluster_id", "kind", "namespace", "name"),
        )


def _decisions() -> None:
    op.create_table(
        "decisions",
        _cluster(),
        _number("revision"),
        _text("id"),
        _text("unit_kind"),
        _text("unit_namespace"),
        _text("unit_name"),
        _text("code"),
        _number("create_us"),
        _text("body"),
        _key("decisions", "cluster_id", "revision", "id"),
        _unique("decisions", "cluster_id", "id"),
    )
    unit = ["cluster_id", "unit_namespace", "unit_name", "revision"]
    op.create_index(f"ix_decisions_{'_'.join(unit)}", "decisions", unit)
    op.create_table(
        "assignments",
        _cluster(),
        _text("decision_id"),
        _binary("body"),
        _key("assignments", "cluster_id", "decision_id"),
    )


def _log() -> None:
    op.create_table(
        "revisions",
        _cluster(),
        _number("revision"),
        _number("time_us"),
        _binary("used_values"),
        _binary("body"),
        _key("revisions", "cluster_id", "revision"),
    )
    op.create_table(
        "requests",
        _cluster(),
        _text("method"),
        _text("request_id"),
        _binary("digest"),
        _binary("response"),
        _number("time_us"),
        _key("requests", "cluster_id", "method", "request_id"),
    )
