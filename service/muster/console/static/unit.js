// One unit: its tree with the counts of each group, and why it is where it is.

import { ask } from "./api.js";
import { badge, facts, h } from "./dom.js";
import { count, moment, object, status, upcoming, words } from "./format.js";
import { link, otherwise } from "./route.js";

// What belongs to a domain that was tried is told below its group, what belongs to the unit above the tree.
const OF_DOMAINS = new Set(["DOMAIN_FAILED", "DOMAIN_RULED_OUT", "MORE_DOMAINS", "CLOSEST_DOMAIN"]);
const OF_UNIT = new Set([
  "FIRST_FAILURE", "SEARCH_PROVED", "SEARCH_UNDECIDED", "SEARCH_NOT_MADE", "PREEMPTION_POSSIBLE", "PREEMPTION_UNDER_WAY",
  "PREEMPTION_CANNOT_HELP", "PREEMPTION_FORBIDDEN", "ROOM_PROMISED", "WAITS_FOR_EVENTS", "WAITS_FOR_PODS", "NEXT_TRY",
  "NOTHING_PENDING", "ROOT_MISSING", "PARENT_CYCLE",
]);

// Changes of which there could be more or fewer.
const COUNTED = /^(ADD|REMOVE|UNCORDON)_/;

export const unit = { seconds: 10, show };

async function show({ parts, query, cluster, signal, heading }) {
  const [, kind, namespace, name] = parts;
  const wantsHelp = query.get("help") === "true";
  const asked = { cluster, kind, namespace, name, whatWouldHelp: wantsHelp ? "true" : "" };
  const { queue, lastDecision, result, helps, revision } = await ask("explain", asked, signal);
  return [
    heading(`${kind} ${namespace}/${name}`),
    standing(queue, lastDecision, revision, { kind, namespace, name }),
    result ? why(result) : h("p", {}, "The unit was gone before it could be explained."),
    result ? h("section", { "aria-labelledby": "tree" }, h("h2", { id: "tree" }, "The tree"), h("ul", { class: "tree" }, group(result))) : null,
    queue ? helpful(helps, wantsHelp, queue.state) : null,
  ].filter(Boolean);
}

function standing(queue, decision, revision, ref) {
  return facts(
    ["State", queue ? status(queue.state, "UNIT_STATE_") : badge("not queued", "good")],
    ["Position", queue?.position || ""],
    ["Priority", queue ? String(queue.priority) : ""],
    ["Pods without a node", queue ? String(queue.pendingPodCount) : ""],
    ["Failed attempts", queue?.attempts || ""],
    ["Waits since", moment(queue?.firstPendingTime)],
    ["Not before", upcoming(queue?.notBeforeTime)],
    ["Last decision", decision ? [h("a", { href: link(["decision", decision.id]) }, `no. ${decision.id}`), ", ", moment(decision.createTime), " ", status(decision.code, "DECISION_CODE_")] : "none"],
    ["All its decisions", h("a", { href: link(["decisions"], { kind: ref.kind, namespace: ref.namespace, name: ref.name }) }, "on record")],
    ["Where it runs", h("a", { href: link(["topology"], { group: `${ref.kind}/${ref.namespace}/${ref.name}` }) }, "in the topology")],
    ["Explained at", `revision ${revision}`],
  );
}

function why(root) {
  const told = root.reasons.filter((reason) => OF_UNIT.has(reason.code));
  if (!told.length) return null;
  return h("section", { "aria-labelledby": "why" }, h("h2", { id: "why" }, "Why"), h("ul", { class: "reasons" }, told.map(reasonLine)));
}

function reasonLine(reason) {
  return h("li", { title: reason.code }, reason.message || words(reason.code));
}

function group(result) {
  const { ref, children, reasons } = result;
  const own = reasons.filter(({ code }) => !OF_DOMAINS.has(code) && !OF_UNIT.has(code));
  const domains = reasons.filter(({ code }) => OF_DOMAINS.has(code));
  const title = [
    object(ref),
    status(result.status, "GROUP_STATUS_"),
    h("span", { class: "held" }, `${result.satisfiedCount} of ${count(result.requiredCount, ref.kind === "CompositePodGroup" ? "group" : "pod")}`),
    result.domainKey ? h("span", { class: "domain-name" }, `${result.domainKey}=${result.domainValue || "none"}`) : null,
  ];
  const body = [counts(result), own.length ? h("ul", { class: "reasons" }, own.map(reasonLine)) : null, tried(domains)];
  const below = children.length ? h("ul", {}, children.map(group)) : null;
  return h(
    "li",
    {},
    h("details", { open: true, data: { key: `group ${ref.kind}/${ref.name}` } }, h("summary", {}, title), body, below),
  );
}

function counts(result) {
  const shown = [
    ["not tried", result.remainingCount],
    ["did not fit", result.unschedulableCount],
    ["cannot fit whatever leaves", result.unresolvableCount],
    ["domains tried", result.candidatesTried],
    ["domains ruled out", result.candidatesPruned],
  ].filter(([, number]) => number);
  return shown.length ? h("p", { class: "counts" }, shown.map(([text, number]) => `${text}: ${number}`).join(" · ")) : null;
}

function tried(reasons) {
  if (!reasons.length) return null;
  return h("div", { class: "domains" }, h("p", {}, "Domain by domain:"), h("ul", { class: "reasons" }, reasons.map(reasonLine)));
}

function helpful(helps, asked, state) {
  const title = h("h2", { id: "helps" }, "What would help");
  const found = helps.map((help) => h("li", { title: help.code }, help.message, COUNTED.test(help.code) && help.details?.proved === "true" ? badge("no fewer will do", "good") : null));
  const text = !asked
    ? h("p", {}, h("a", { class: "button", href: otherwise({ help: "true" }), data: { key: "help" } }, "Try which changes would let it be scheduled"))
    : found.length
      ? [h("p", {}, `Each of these ${count(helps.length, "change")} was tried and is enough by itself:`), h("ul", { class: "reasons" }, found)]
      : h("p", {}, state === "UNIT_STATE_WAITING_FOR_PREEMPTION" ? "It waits for pods to leave; no other change was tried." : "No single change that was tried would.");
  return h("section", { "aria-labelledby": "helps" }, title, text);
}
