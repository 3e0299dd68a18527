"""The contract of `muster.v1` as callers rely on it: names that must stay, kept apart from the protos themselves.

Fields may be added to a message; none that stands here may go or change its name.
"""

RPCS = {
    "ClusterService": {
        "Apply": "ApplyRequest -> ApplyResponse",
        "ApplyStream": "stream ApplyRequest -> stream ApplyStreamResponse",
        "Get": "GetRequest -> GetResponse",
        "List": "ListRequest -> ListResponse",
        "Delete": "DeleteRequest -> DeleteResponse",
        "Watch": "WatchRequest -> stream WatchResponse",
        "ReportPods": "ReportPodsRequest -> ReportPodsResponse",
        "GetServerInfo": "GetServerInfoRequest -> GetServerInfoResponse",
        "ListClusters": "ListClustersRequest -> ListClustersResponse",
        "DeleteCluster": "DeleteClusterRequest -> DeleteClusterResponse",
    },
    "SchedulerService": {
        "Schedule": "ScheduleRequest -> ScheduleResponse",
        "Preempt": "PreemptRequest -> PreemptResponse",
        "Simulate": "SimulateRequest -> SimulateResponse",
        "Explain": "ExplainRequest -> ExplainResponse",
        "WatchDecisions": "WatchDecisionsRequest -> stream WatchDecisionsResponse",
        "GetDecision": "GetDecisionRequest -> GetDecisionResponse",
        "ListDecisions": "ListDecisionsRequest -> ListDecisionsResponse",
        "GetQueue": "GetQueueRequest -> GetQueueResponse",
    },
}

# Fields by name; those in braces belong to the message of the field before them.
MESSAGES = {
    "ApplyRequest": "cluster objects request_id validate_only",
    "ApplyResponse": "revision results{outcome uid resource_version counts{created updated unchanged}}",
    "ApplyStreamResponse": "sequence response{revision results}",
    "GetRequest": "cluster ref",
    "GetResponse": "object revision",
    "ListRequest": (
        "cluster kind namespace label_selector{match_labels match_expressions} node_name unbound deleting "
        "group{kind namespace name} phase page_size page_token"
    ),
    "ListResponse": "objects next_page_token revision",
    "DeleteRequest": (
        "cluster refs{ref resource_version} propagation allow_missing force grace_period_seconds request_id "
        "validate_only"
    ),
    "DeleteResponse": "revision outcomes",
    "WatchRequest": "cluster kinds namespace label_selector from_revision",
    "WatchResponse": "events{type object} revision initial_state_complete",
    "ReportPodsRequest": (
        "cluster request_id reports{namespace name uid bound{node_name} "
        "binding_failed{node_name reason message} phase_changed{phase} removed}"
    ),
    "ReportPodsResponse": "outcomes",
    "GetServerInfoResponse": "version capabilities limits eviction_mode profiles replica",
    "ListClustersResponse": "clusters{name revision counts}",
    "DeleteClusterRequest": "cluster",
    "ScheduleRequest": "cluster unit validate_only wait{seconds nanos} request_id",
    "ScheduleResponse": "decision fresh queue",
    "PreemptRequest": "cluster unit validate_only request_id",
    "PreemptResponse": "decision",
    "SimulateRequest": (
        "cluster inline{objects} overlay{objects removed drained_nodes} units whole_queue "
        "without_preemption time_limit"
    ),
    "SimulateResponse": "decisions totals{resources domains} partial revision",
    "ExplainRequest": "cluster unit what_would_help",
    "ExplainResponse": "queue last_decision result helps revision",
    "WatchDecisionsRequest": "cluster from_revision units codes",
    "WatchDecisionsResponse": "decisions revision",
    "GetDecisionRequest": "cluster id rerun",
    "GetDecisionResponse": "decision rerun{equal same_input decision differences not_possible}",
    "ListDecisionsRequest": "cluster unit start_time end_time codes page_size page_token",
    "ListDecisionsResponse": "decisions next_page_token",
    "GetQueueRequest": "cluster states page_size page_token",
    "GetQueueResponse": (
        "units{unit state priority attempts position first_pending_time not_before_time last_attempt_time "
        "reasons} counts{state count} pending_pod_groups{ref} pending_pod_group_members{ref} "
        "next_page_token revision"
    ),
    "ObjectMeta": (
        "name namespace uid resource_version generation creation_timestamp deletion_timestamp "
        "deletion_grace_period_seconds labels annotations "
        "owner_references{api_version kind name uid controller block_owner_deletion} finalizers"
    ),
    "Condition": "type status observed_generation last_transition_time reason message",
    "ObjectRef": "kind namespace name uid",
    "LabelSelector": "match_labels match_expressions{key operator values}",
    "Node": (
        "metadata spec{unschedulable taints{key value effect}} "
        "status{capacity allocatable conditions{type status}}"
    ),
    "Pod": "metadata spec status{phase conditions nominated_node_name start_time reason message}",
    "PodSpec": (
        "containers{name resources{requests limits} ports{name host_port container_port protocol host_ip} "
        "restart_policy} init_containers{name resources ports restart_policy} overhead "
        "resources{requests limits} node_selector affinity tolerations topology_spread_constraints "
        "priority_class_name priority preemption_policy scheduler_name scheduling_gates{name} "
        "scheduling_group{pod_group_name} node_name termination_grace_period_seconds host_network"
    ),
    "Affinity": (
        "node_affinity{required_during_scheduling_ignored_during_execution{node_selector_terms"
        "{match_expressions{key operator values} match_fields{key operator values}}} "
        "preferred_during_scheduling_ignored_during_execution{weight preference}} "
        "pod_affinity{required_during_scheduling_ignored_during_execution "
        "preferred_during_scheduling_ignored_during_execution} "
        "pod_anti_affinity{required_during_scheduling_ignored_during_execution "
        "preferred_during_scheduling_ignored_during_execution{weight pod_affinity_term}}"
    ),
    "PodAffinityTerm": (
        "label_selector namespaces topology_key namespace_selector match_label_keys mismatch_label_keys"
    ),
    "Toleration": "key operator value effect toleration_seconds",
    "TopologySpreadConstraint": (
        "max_skew topology_key when_unsatisfiable label_selector min_domains node_affinity_policy "
        "node_taints_policy match_label_keys"
    ),
    "PodBatch": "template{metadata spec} names uids",
    "PodGroup": "metadata spec status{conditions}",
    "PodGroupSpec": (
        "parent_composite_pod_group_name workload_ref{workload_name template_name} "
        "scheduling_policy{basic gang{min_count}} scheduling_constraints{topology{key}} "
        "disruption_mode{single all} priority_class_name priority preemption_policy"
    ),
    "CompositePodGroup": "metadata spec status{conditions}",
    "CompositePodGroupSpec": (
        "parent_composite_pod_group_name workload_ref{workload_name template_name} "
        "scheduling_policy{basic gang{min_group_count}} scheduling_constraints{topology{key}} "
        "disruption_mode{single all} priority_class_name priority preemption_policy"
    ),
    "Workload": (
        "metadata spec{controller_ref{api_group kind name} pod_group_templates{name scheduling_policy} "
        "composite_pod_group_templates{name scheduling_policy pod_group_templates "
        "composite_pod_group_templates}}"
    ),
    "PriorityClass": "metadata value global_default description preemption_policy",
    "PodDisruptionBudget": (
        "metadata spec{min_available max_unavailable selector} "
        "status{disruptions_allowed current_healthy desired_healthy expected_pods}"
    ),
    "Object": (
        "node pod pod_group composite_pod_group workload priority_class pod_disruption_budget pod_batch"
    ),
    "Decision": (
        "id cluster revision snapshot_revision unit code message result assignments assignments_omitted "
        "preemption search{end} trace_id profile create_time duration"
    ),
    "GroupResult": (
        "ref status required_count satisfied_count remaining_count unschedulable_count unresolvable_count "
        "domain_key domain_value candidates_tried candidates_pruned "
        "reasons{code message node_count details} children{ref children}"
    ),
    "Assignments": "namespace nodes pods uids node_index",
    "Preemption": (
        "victims{ref priority violates_budget reason pods{namespace name uid node_name "
        "grace_period_seconds}} reprieved{ref} budget_violations nominations not_possible"
    ),
}

ENUMS = {
    "ApplyOutcome": ("APPLY_OUTCOME", "CREATED UPDATED UNCHANGED"),
    "DeleteOutcome": ("DELETE_OUTCOME", "DELETED MARKED MISSING"),
    "Propagation": ("PROPAGATION", "BACKGROUND FOREGROUND ORPHAN"),
    "EventType": ("EVENT_TYPE", "ADDED MODIFIED DELETED"),
    "ReportOutcome": ("REPORT_OUTCOME", "ACCEPTED UNCHANGED STALE UNKNOWN_POD INVALID"),
    "DecisionCode": (
        "DECISION_CODE",
        (
            "SCHEDULED WAITING_FOR_PREEMPTION FITS_WITHOUT_PREEMPTION UNSCHEDULABLE "
            "UNSCHEDULABLE_AND_UNRESOLVABLE INVALID SCHEDULER_ERROR GATED PENDING UNCHANGED"
        ),
    ),
    "GroupStatus": ("GROUP_STATUS", "SUCCESS WAIT UNSCHEDULABLE UNSCHEDULABLE_AND_UNRESOLVABLE"),
    "SearchEnd": ("SEARCH_END", "NOT_NEEDED FOUND EXHAUSTED BUDGET_SPENT"),
    "UnitState": (
        "UNIT_STATE",
        "PENDING GATED ACTIVE BACKOFF UNSCHEDULABLE IN_FLIGHT WAITING_FOR_PREEMPTION",
    ),
}

ONEOFS = {
    "Object": ("kind", MESSAGES["Object"]),
    "PodReport": ("report", "bound binding_failed phase_changed removed"),
    "SimulateRequest": ("base", "cluster_base inline"),
}

# Where unset means something else than the zero value.
PRESENCE_AWARE = {
    "ObjectMeta": "deletion_grace_period_seconds",
    "PodSpec": "priority preemption_policy termination_grace_period_seconds",
    "Toleration": "toleration_seconds",
    "TopologySpreadConstraint": "min_domains",
    "PodGroupSpec": "priority preemption_policy",
    "CompositePodGroupSpec": "priority preemption_policy",
    "PodGroupTemplate": "priority preemption_policy",
    "CompositePodGroupTemplate": "priority preemption_policy",
    "GangSchedulingPolicy": "min_count",
    "GangGroupSchedulingPolicy": "min_group_count",
    "PriorityClass": "preemption_policy",
    "PodDisruptionBudgetSpec": "min_available max_unavailable",
    "DeleteRequest": "grace_period_seconds",
    "WatchRequest": "from_revision",
    "WatchDecisionsRequest": "from_revision",
}
