// What was decided, the newest first.

import { ask } from "./api.js";
import { h, table } from "./dom.js";
import { duration, moment, object, status, words } from "./format.js";
import { chips, pager } from "./pager.js";
import { link, otherwise } from "./route.js";

const PREFIX = "DECISION_CODE_";
const CODES = ["SCHEDULED", "WAITING_FOR_PREEMPTION", "UNSCHEDULABLE", "UNSCHEDULABLE_AND_UNRESOLVABLE", "INVALID", "SCHEDULER_ERROR"];

export const decisions = { seconds: 3, show };

async function show({ query, cluster, signal, heading }) {
  const unit = { kind: query.get("kind"), namespace: query.get("namespace"), name: query.get("name") };
  const answer = await ask("decisions", { cluster, code: query.get("code"), pageToken: query.get("page"), ...unit }, signal);
  return [
    heading("Decisions"),
    unit.name ? h("p", {}, "Of ", object(unit), ". ", h("a", { href: otherwise({ kind: "", namespace: "", name: "", page: "" }) }, "Of all units")) : null,
    chips("Outcome", query, "code", [["", "all"], ...CODES.map((code) => [PREFIX + code, words(code)])]),
    answer.decisions.length ? table("Decisions, the newest first", COLUMNS, answer.decisions, { class: "wide" }) : h("p", { class: "empty" }, "There is none on record."),
    pager(query, answer.nextPageToken),
  ].filter(Boolean);
}

const COLUMNS = [
  { title: "decision", cell: ({ id }) => h("a", { href: link(["decision", id]), data: { key: `decision ${id}` } }, `no. ${id}`) },
  { title: "when", cell: ({ createTime }) => moment(createTime) },
  { title: "unit", cell: ({ unit }) => object(unit) },
  { title: "outcome", cell: ({ code }) => status(code, PREFIX) },
  { title: "took", number: true, cell: (decision) => duration(decision.duration) },
  { title: "what it says", cell: ({ message }) => message },
];
