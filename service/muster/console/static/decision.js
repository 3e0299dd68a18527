// One decision: what came of it, and how its recursion went, as a timeline that is a table as well.

import { ask, Refused } from "./api.js";
import { facts, h, table } from "./dom.js";
import { count, duration, milliseconds, moment, object, status, words } from "./format.js";

const MOST_PODS = 500;
const SECTIONS = { cycle: "the cycle", pods: "pods placed", fill: "filled up", search: "search", preemption: "preemption" };

export const decision = { seconds: 0, show };

async function show({ parts, cluster, signal, heading }) {
  const asked = { cluster, id: parts[1] };
  const [told, timeline] = await Promise.all([ask("decision", asked, signal), ask("timeline", asked, signal).catch(unasked)]);
  return [
    heading(`Decision no. ${told.id}`),
    outcome(told),
    h("section", { "aria-labelledby": "timeline" }, h("h2", { id: "timeline" }, "How it was made"), timeline.error ? h("p", {}, timeline.error) : chart(timeline)),
    victims(told.preemption),
    placed(told),
  ].filter(Boolean);
}

/** A timeline that is not to be had leaves the rest of the page as it is. */
function unasked(error) {
  if (error instanceof Refused) return { error: `There is no timeline: ${error.message}` };
  throw error;
}

function stepsOf({ nodesSpent, nodesBudget }) {
  const [spent, budget] = [Number(nodesSpent), Number(nodesBudget)];
  if (!spent) return "";
  return spent > budget ? ` ${spent} steps, ${budget} allowed` : ` ${spent} of ${budget} steps`;
}

function outcome(told) {
  const { search } = told;
  return facts(
    ["Unit", object(told.unit)],
    ["Outcome", status(told.code, "DECISION_CODE_")],
    ["What it says", told.message],
    ["Made", [moment(told.createTime), ` on revision ${told.snapshotRevision}, committed as ${told.revision}`]],
    ["Took", duration(told.duration)],
    ["Search", search?.end ? [status(search.end, "SEARCH_END_"), stepsOf(search)] : ""],
    ["Preemption", told.preemption?.notPossible ?? ""],
    ["Profile", told.profile],
    ["Trace", told.traceId],
  );
}

function chart({ timed, equal, length, reason, spans, hidden }) {
  const text = timed
    ? `Made again just now from the same input, in ${milliseconds(length)}; it came out ${equal ? "equal" : "otherwise than recorded"}.`
    : `In the order of the recursion, without times (${reason}). A bar is as long as the domains that were looked at are many.`;
  if (!spans.length) return h("p", {}, `Nothing was tried (${reason}).`);
  return [
    h("p", {}, text),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Timeline" },
      h(
        "table",
        { class: "timeline" },
        h("caption", {}, "Sections of the recursion, in the order in which they began"),
        h("thead", {}, h("tr", {}, ["section", "came to", "domain", timed ? "began" : "", timed ? "took" : "looked at", timed ? `0 to ${milliseconds(length)}` : "order"].map((title) => h("th", { scope: "col" }, title)))),
        h("tbody", {}, spans.map((span) => row(span, length, timed))),
      ),
    ),
    hidden ? h("p", {}, `${hidden} more sections are not shown.`) : null,
  ];
}

function row(span, length, timed) {
  const { attributes, candidates } = span;
  const at = (part) => `${(100 * part) / length}%`;
  const kind = attributes.status ? (attributes.status === "SUCCESS" || attributes.status === "SCHEDULED" ? "good" : "bad") : "plain";
  return h(
    "tr",
    {},
    h("th", { scope: "row", class: "section", vars: { "--depth": String(span.depth) } }, h("span", { class: "visually-hidden" }, `level ${span.depth + 1}: `), label(span)),
    h("td", {}, came(span)),
    h("td", {}, attributes.domain || "", domains(candidates)),
    h("td", { class: "number" }, timed ? milliseconds(span.start) : ""),
    h("td", { class: "number" }, timed ? milliseconds(span.length) : String(span.length)),
    h("td", { class: "lane" }, h("span", { class: "track", "aria-hidden": "true" }, h("span", { class: `span ${kind} ${span.section}`, vars: { "--from": at(span.start), "--long": at(span.length) } }))),
  );
}

function label({ section, name }) {
  return section === "group" ? name : `${SECTIONS[section] ?? section}${["pods", "fill"].includes(section) ? ` of ${name}` : ""}`;
}

function came({ section, attributes }) {
  const { status: code, s, m, pods, end, steps } = attributes;
  if (section === "group") return [status(code, ""), ` ${s} of ${m}`];
  if (code) return status(code, "");
  if (end) return `${words(end)}, ${count(steps, "step")}`;
  return pods === undefined ? "" : count(pods, "pod");
}

function domains(candidates) {
  if (!candidates.length) return null;
  return h(
    "details",
    {},
    h("summary", {}, `${candidates.length} looked at`),
    h("ul", { class: "reasons" }, candidates.map((each) => h("li", {}, `${each.domain}: ${each.pruned ? "ruled out, " : ""}${words(each.status)}`))),
  );
}

function victims(preemption) {
  if (!preemption?.victims?.length) return null;
  const columns = [
    { title: "unit", cell: ({ ref }) => object(ref) },
    { title: "priority", number: true, cell: ({ priority }) => String(priority) },
    { title: "pods", number: true, cell: ({ pods }) => String(pods.length) },
    { title: "breaks a budget", cell: ({ violatesBudget }) => (violatesBudget ? "yes" : "no") },
  ];
  return h("section", {}, h("h2", {}, "Who has to go"), table("Victims", columns, preemption.victims));
}

function placed({ assignments, assignmentsOmitted }) {
  if (assignmentsOmitted) return h("p", {}, "There are too many pods to list here.");
  if (!assignments?.pods?.length) return null;
  const rows = assignments.pods.slice(0, MOST_PODS).map((pod, index) => ({ pod, node: assignments.nodes[assignments.nodeIndex[index]] }));
  const more = assignments.pods.length - rows.length;
  return h(
    "details",
    { data: { key: "pods" } },
    h("summary", {}, `${count(assignments.pods.length, "pod")} on ${count(assignments.nodes.length, "node")}`),
    table("Pods and their nodes", [{ title: "pod", cell: ({ pod }) => pod }, { title: "node", cell: ({ node }) => node }], rows),
    more ? h("p", {}, `${more} more are not shown.`) : null,
  );
}
