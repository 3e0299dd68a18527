"""The schema, and the only place that knows the name of a column.

Everything belongs to a cluster by its integer id. Pods are narrow rows that point to shared values (`pod_specs`,
`pod_metadata`, `pod_statuses`), each of which is stored once. All other kinds are a key and a body, as the engine
keeps every object in memory and never asks the database to search in them.

No foreign keys: one writer holds the whole truth in memory, and a check for each row would double the cost of a
large commit. `leases` goes by the cluster's name, because a cluster is owned before it exists.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
)

from muster.model.meta import (
    COMPOSITE_POD_GROUP,
    NODE,
    POD_DISRUPTION_BUDGET,
    POD_GROUP,
    PRIORITY_CLASS,
    WORKLOAD,
)

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


# Order and equality are those of the bytes on both databases, whatever a server's locale.
NAME = Text().with_variant(Text(collation="C"), "postgresql")


def _number(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False)


def _optional_number(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=True)


def _text(name: str) -> Column[str]:
    return Column(name, NAME, nullable=False)


def _binary(name: str) -> Column[bytes]:
    return Column(name, LargeBinary, nullable=False)


def _cluster() -> Column[int]:
    return Column("cluster_id", Integer, nullable=False)


clusters = Table(
    "clusters",
    metadata,
    Column("id", Integer, nullable=False),
    _text("name"),
    _number("revision"),
    _number("compacted_revision"),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("name"),
)


def _shared_values(name: str) -> Table:
    return Table(
        name,
        metadata,
        _cluster(),
        _number("id"),
        _binary("digest"),
        _text("body"),
        PrimaryKeyConstraint("cluster_id", "id"),
        UniqueConstraint("cluster_id", "digest"),
    )


pod_specs = _shared_values("pod_specs")
pod_metadata = _shared_values("pod_metadata")
pod_statuses = _shared_values("pod_statuses")

# In the order in which `rows` builds them. PostgreSQL leaves half of each page free: a pod is changed soon after it
# is made, and a change that stays on its page leaves the indexes alone, which makes it thrice as fast. SQLite keeps the
# rows in the primary key itself, since a second tree for it would make each insert a quarter dearer.
pods = Table(
    "pods",
    metadata,
    _cluster(),
    _number("ordinal"),
    _text("namespace"),
    _text("name"),
    _text("uid"),
    _number("resource_version"),
    _number("generation"),
    _number("creation_us"),
    _optional_number("deletion_us"),
    _optional_number("deletion_grace_seconds"),
    _text("group_name"),
    _text("gates"),
    _text("node_name"),
    _number("spec_id"),
    _number("metadata_id"),
    _number("status_id"),
    PrimaryKeyConstraint("cluster_id", "ordinal"),
    UniqueConstraint("cluster_id", "namespace", "name"),
    sqlite_with_rowid=False,
    postgresql_with={"fillfactor": 50},
)
# What a write can change of a stored pod, and where in its row each shared value is named.
POD_CHANGES = tuple(
    column.name
    for column in pods.columns
    if column.name not in {"cluster_id", "ordinal", "namespace", "name", "uid", "creation_us"}
)


def _objects(name: str) -> Table:
    return Table(
        name,
        metadata,
        _cluster(),
        _text("namespace"),
        _text("name"),
        _text("body"),
        PrimaryKeyConstraint("cluster_id", "namespace", "name"),
    )


OBJECT_TABLES: dict[str, Table] = {
    NODE: _objects("nodes"),
    POD_GROUP: _objects("pod_groups"),
    COMPOSITE_POD_GROUP: _objects("composite_pod_groups"),
    WORKLOAD: _objects("workloads"),
    PRIORITY_CLASS: _objects("priority_classes"),
    POD_DISRUPTION_BUDGET: _objects("disruption_budgets"),
}

queue_units = Table(
    "queue_units",
    metadata,
    _cluster(),
    _text("kind"),
    _text("namespace"),
    _text("name"),
    Column("state", SmallInteger, nullable=False),
    _number("priority"),
    _number("since_us"),
    Column("attempts", Integer, nullable=False),
    _number("not_before_us"),
    _number("last_attempt_us"),
    _text("reasons"),
    _text("message"),
    PrimaryKeyConstraint("cluster_id", "kind", "namespace", "name"),
)


def _pending(name: str) -> Table:
    return Table(
        name,
        metadata,
        _cluster(),
        _text("kind"),
        _text("namespace"),
        _text("name"),
        _text("missing_kind"),
        _text("missing_namespace"),
        _text("missing_name"),
        PrimaryKeyConstraint("cluster_id", "kind", "namespace", "name"),
    )


pending_pod_groups = _pending("pending_pod_groups")
pending_pod_group_members = _pending("pending_pod_group_members")

preemption_waits = Table(
    "preemption_waits",
    metadata,
    _cluster(),
    _text("kind"),
    _text("namespace"),
    _text("name"),
    _number("until_us"),
    _binary("body"),
    PrimaryKeyConstraint("cluster_id", "kind", "namespace", "name"),
)

failed_bindings = Table(
    "failed_bindings",
    metadata,
    _cluster(),
    _number("ordinal"),
    _text("node_name"),
    _number("until_us"),
    PrimaryKeyConstraint("cluster_id", "ordinal", "node_name"),
)

decisions = Table(
    "decisions",
    metadata,
    _cluster(),
    _number("revision"),
    _text("id"),
    _text("unit_kind"),
    _text("unit_namespace"),
    _text("unit_name"),
    _text("code"),
    _number("create_us"),
    _text("body"),
    PrimaryKeyConstraint("cluster_id", "revision", "id"),
    UniqueConstraint("cluster_id", "id"),
    Index(None, "cluster_id", "unit_namespace", "unit_name", "revision"),
)

assignments = Table(
    "assignments",
    metadata,
    _cluster(),
    _text("decision_id"),
    _binary("body"),
    PrimaryKeyConstraint("cluster_id", "decision_id"),
)

# `used_values` stands before `body`, so that compaction reads it without the pages that a long body fills.
revisions = Table(
    "revisions",
    metadata,
    _cluster(),
    _number("revision"),
    _number("time_us"),
    _binary("used_values"),
    _binary("body"),
    PrimaryKeyConstraint("cluster_id", "revision"),
)

requests = Table(
    "requests",
    metadata,
    _cluster(),
    _text("method"),
    _text("request_id"),
    _binary("digest"),
    _binary("response"),
    _number("time_us"),
    PrimaryKeyConstraint("cluster_id", "method", "request_id"),
)

# `commits` counts the transactions of the owner, so that one whose outcome is unknown can be looked up. An owner
# keeps its lease for as long as it holds the store's lock; `expires_us` is NULL for that.
leases = Table(
    "leases",
    metadata,
    _text("cluster"),
    _text("owner"),
    _number("token"),
    _number("commits"),
    _optional_number("expires_us"),
    PrimaryKeyConstraint("cluster"),
)

SHARED_VALUE_TABLES = (pod_specs, pod_metadata, pod_statuses)
TABLES_OF_A_CLUSTER = tuple(table for table in metadata.sorted_tables if "cluster_id" in table.columns)
