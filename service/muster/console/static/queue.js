// The queue: what waits, in which state, and why.

import { ask } from "./api.js";
import { h, table } from "./dom.js";
import { count, moment, object, status, upcoming, words } from "./format.js";
import { chips, pager } from "./pager.js";

const PREFIX = "UNIT_STATE_";

export const queue = { seconds: 3, show };

async function show({ query, cluster, signal, heading }) {
  const answer = await ask("queue", { cluster, state: query.get("state"), pageToken: query.get("page") }, signal);
  const total = answer.counts.reduce((sum, each) => sum + each.count, 0);
  const states = answer.counts.map(({ state, count: units }) => [state, `${words(state.replace(PREFIX, ""))} ${units}`]);
  return [
    heading("Queue"),
    h("p", {}, total ? `${count(total, "unit")} at revision ${answer.revision}, the next to be tried first.` : "Nothing waits."),
    chips("States", query, "state", [["", `all ${total}`], ...states]),
    answer.units.length ? table("Units", COLUMNS, answer.units, { class: "wide" }) : null,
    pager(query, answer.nextPageToken),
    pending("Groups without their root", answer.pendingPodGroups, answer.pendingPodGroupCount),
    pending("Pods without their group", answer.pendingPodGroupMembers, answer.pendingPodGroupMemberCount),
  ].filter(Boolean);
}

const COLUMNS = [
  { title: "unit", cell: ({ unit }) => object(unit) },
  { title: "state", cell: ({ state }) => status(state, PREFIX) },
  { title: "position", number: true, cell: ({ position }) => (position ? String(position) : "–") },
  { title: "priority", number: true, cell: ({ priority }) => String(priority) },
  { title: "pods", number: true, cell: ({ pendingPodCount }) => String(pendingPodCount) },
  { title: "failed", number: true, cell: ({ attempts }) => String(attempts) },
  { title: "waits since", cell: ({ firstPendingTime }) => moment(firstPendingTime) },
  { title: "not before", cell: ({ notBeforeTime }) => upcoming(notBeforeTime) },
  { title: "why", cell: ({ reasons }) => reasons.map((reason) => reason.message || words(reason.code)).join(", ") },
];

function pending(title, listed, total) {
  if (!total) return null;
  const columns = [
    { title: "object", cell: ({ ref }) => object(ref) },
    { title: "waits for", cell: ({ missing }) => `${missing.kind} ${missing.namespace}/${missing.name}` },
  ];
  return h("section", {}, h("h2", {}, `${title}: ${total}`), table(title, columns, listed));
}
