// The cluster from above: nested domains, nodes coloured by what is in use, one group to be highlighted.

import { ask } from "./api.js";
import { facts, h, roving, table } from "./dom.js";
import { amount, count, object, percent, share } from "./format.js";
import { go, otherwise } from "./route.js";

const UNUSED = 0.005;
const STEPS = [0.25, 0.5, 0.75, 0.95];
const LEGEND = ["unused", "up to 25 %", "up to 50 %", "up to 75 %", "up to 95 %", "full"];
const BUSIEST = "busiest";
const NAMED_HOSTS = 80;
const NUMBERED_HOSTS = 400;

/** The step of the scale that a share falls into: 0 unused, 5 full. */
export function step(part) {
  return part < UNUSED ? 0 : 1 + STEPS.filter((from) => part > from).length;
}

export const topology = { seconds: 4, show };

async function show({ query, cluster, signal, heading }) {
  const marked = groupOf(query.get("group"));
  const path = query.getAll("at");
  const levels = query.getAll("level");
  const answer = await ask("topology", { cluster, at: path, level: levels, ...marked }, signal);
  const resource = answer.resources.includes(query.get("resource")) ? query.get("resource") : BUSIEST;
  const view = { answer, resource, marked };
  const asTable = query.get("as") === "table";
  return [
    heading(path.length ? `Topology of ${path.join(" / ")}` : "Topology"),
    crumbs(answer),
    controls(view, asTable),
    marked ? highlighted(view) : null,
    sums(answer),
    answer.block.nodes === 0 ? h("p", { class: "empty" }, "There are no nodes here.") : null,
    asTable ? tables(view) : [legend(), h("section", { class: "blocks", "aria-label": "Domains and nodes" }, inside(view, answer.block, answer.path))],
  ].flat().filter(Boolean);
}

function groupOf(text) {
  const [kind, namespace, name] = (text ?? "").split("/");
  return name ? { kind, namespace, name } : null;
}

function crumbs({ keys, path }) {
  if (!path.length) return null;
  const steps = ["Whole cluster", ...path].map((value, depth) => {
    const last = depth === path.length;
    const text = depth ? `${short(keys[depth - 1])} ${value}` : value;
    return h("li", {}, last ? h("span", { "aria-current": "true" }, text) : h("a", { href: otherwise({ at: path.slice(0, depth) }) }, text));
  });
  return h("nav", { "aria-label": "Domain" }, h("ol", { class: "crumbs" }, steps));
}

function controls({ answer, resource, marked }, asTable) {
  const options = [[BUSIEST, "the busiest resource"], ...answer.resources.map((each) => [each, each])];
  const choose = (name) => (event) => go(otherwise({ [name]: event.target.value }));
  const group = h("input", {
    id: "group",
    list: "groups",
    value: marked ? `${marked.kind}/${marked.namespace}/${marked.name}` : "",
    placeholder: "Kind/namespace/name",
    autocomplete: "off",
    data: { key: "group" },
    on: { change: choose("group"), input: (event) => suggest(event.target, answer) },
  });
  const known = [...new Set([...answer.keys, ...answer.labels])];
  const level = (depth) =>
    h(
      "label",
      {},
      `Level ${depth + 1} `,
      h(
        "select",
        {
          data: { key: `level-${depth}` },
          on: { change: (event) => go(otherwise({ at: [], level: changed(answer.keys, depth, event.target.value) })) },
        },
        h("option", { value: "" }, "none"),
        known.map((key) => h("option", { value: key, selected: answer.keys[depth] === key }, key)),
      ),
    );
  return h(
    "form",
    { class: "controls", "aria-label": "How the topology is shown", on: { submit: (event) => event.preventDefault() } },
    h(
      "label",
      {},
      "Colour by ",
      h(
        "select",
        { data: { key: "resource" }, on: { change: choose("resource") } },
        options.map(([value, text]) => h("option", { value, selected: value === resource }, text)),
      ),
    ),
    h("label", { for: "group" }, "Highlight a group"),
    group,
    h("datalist", { id: "groups" }),
    answer.keys.map((_, depth) => level(depth)),
    known.length > answer.keys.length ? level(answer.keys.length) : null,
    h(
      "label",
      { class: "check" },
      h("input", {
        type: "checkbox",
        checked: asTable,
        data: { key: "as-table" },
        on: { change: (event) => go(otherwise({ as: event.target.checked ? "table" : "" })) },
      }),
      " as a table",
    ),
  );
}

function changed(keys, depth, key) {
  const levels = [...keys];
  levels[depth] = key;
  return levels.filter(Boolean);
}

let suggesting = 0;

/** Offers groups whose name contains what was typed, once the typing pauses. */
function suggest(field, { block }) {
  clearTimeout(suggesting);
  if (!block.nodes || field.value.split("/").length > 2) return;
  suggesting = setTimeout(async () => {
    const cluster = document.getElementById("cluster").value;
    const found = await ask("groups", { cluster, text: field.value }).catch(() => []);
    document.getElementById("groups")?.replaceChildren(
      ...found.map((each) =>
        h("option", { value: `${each.kind}/${each.namespace}/${each.name}` }, `${count(each.bound, "pod")} bound, ${each.pending} waiting`),
      ),
    );
  }, 250);
}

function highlighted({ answer, marked }) {
  const { bound, nominated } = answer.block;
  return h(
    "p",
    { class: "highlight-note" },
    h("span", { class: "swatch marked", "aria-hidden": "true" }),
    object(marked),
    `: ${count(bound, "pod")} bound here`,
    nominated ? `, ${nominated} promised room` : "",
    ". ",
    h("a", { href: otherwise({ group: "" }) }, "No highlight"),
  );
}

function sums({ block, resources }) {
  return h(
    "ul",
    { class: "sums", "aria-label": "In use" },
    h("li", {}, h("strong", {}, count(block.nodes, "node")), block.cordoned ? h("span", {}, `${block.cordoned} cordoned`) : null),
    resources.map((resource) => {
      const use = block.use[resource];
      const part = share(use);
      return h(
        "li",
        {},
        h("strong", {}, resource),
        h("span", {}, `${amount(resource, use[0])} of ${amount(resource, use[1])}, ${percent(part)}`),
        h("span", { class: `bar u${step(part)}`, vars: { "--part": `${Math.min(1, part) * 100}%` }, "aria-hidden": "true" }),
      );
    }),
  );
}

function legend() {
  return h(
    "ul",
    { class: "legend", "aria-label": "Colours" },
    LEGEND.map((text, index) => h("li", {}, h("span", { class: `swatch u${index}`, "aria-hidden": "true" }), text)),
    h("li", {}, h("span", { class: "swatch cordoned", "aria-hidden": "true" }), "cordoned"),
    h("li", {}, h("span", { class: "swatch marked", "aria-hidden": "true" }), "runs the highlighted group"),
  );
}

function part({ resource, answer }, use) {
  if (resource !== BUSIEST) return share(use[resource] ?? [0, 0]);
  return Math.max(0, ...answer.resources.filter((each) => each !== "pods").map((each) => share(use[each] ?? [0, 0])));
}

function short(key) {
  return key.split("/").at(-1);
}

function title({ key, value }) {
  return value === null ? `no ${short(key)}` : `${short(key)} ${value || "(empty)"}`;
}

function inside(view, block, path) {
  const hidden = block.hidden ? h("p", { class: "hidden-note" }, `${block.hidden} more are not shown: open a domain to see what is in it.`) : null;
  const [first] = block.blocks;
  // Nodes that lack the outer label and the inner one need no block inside a block.
  if (block.value === null && block.key && block.blocks.length === 1 && first.value === null) return inside(view, first, path);
  if (block.blocks.length) return [h("div", { class: "nested" }, block.blocks.map((each) => domain(view, each, path))), hidden];
  if (!block.hosts.length) return [hidden];
  return [hosts(view, block)];
}

function domain(view, block, path) {
  const at = [...path, block.value];
  const used = part(view, block.use);
  const canOpen = block.value !== null && !path.includes(null);
  const name = title(block);
  return h(
    "section",
    { class: `domain u-edge${block.bound ? " marked" : ""}`, "aria-label": name },
    h(
      "h2",
      { class: "domain-title" },
      canOpen ? h("a", { href: otherwise({ at }), data: { key: `block ${at.join("\u0000")}` } }, name) : name,
      h("span", { class: "domain-use" }, `${percent(used)}`),
      block.bound + block.nominated ? h("span", { class: "domain-mark" }, count(block.bound + block.nominated, "pod")) : null,
    ),
    inside(view, block, at),
  );
}

function hosts(view, block) {
  const total = view.answer.block.nodes;
  const size = total <= NAMED_HOSTS ? "named" : total <= NUMBERED_HOSTS ? "numbered" : "plain";
  return roving(
    h("div", { class: `hosts ${size}`, role: "group", "aria-label": `Nodes of ${block.key ? title(block) : "the cluster"}` }, block.hosts.map((each) => host(view, each, size))),
    "button",
  );
}

function host(view, each, size) {
  const used = part(view, each.use);
  const pods = each.bound + each.nominated;
  const told = [`${each.name}, ${percent(used)} in use`, each.cordoned ? "cordoned" : "", pods ? `${count(pods, "pod")} of the group` : ""];
  return h(
    "button",
    {
      type: "button",
      class: `host u${step(used)}${each.cordoned ? " cordoned" : ""}${pods ? " marked" : ""}`,
      "aria-label": told.filter(Boolean).join(", "),
      title: told.filter(Boolean).join(", "),
      data: { key: `host ${each.name}` },
      on: { click: () => detail(view, each) },
    },
    size === "named" ? h("span", { class: "host-name" }, each.name) : null,
    size === "plain" ? null : h("span", {}, pods ? `${pods}●` : percent(used)),
  );
}

function detail(view, each) {
  document.querySelector(".detail")?.remove();
  const close = () => {
    panel.remove();
    [...document.querySelectorAll("[data-key]")].find((found) => found.dataset.key === `host ${each.name}`)?.focus();
  };
  const panel = h(
    "dialog",
    { class: "detail", "aria-labelledby": "detail-title", on: { close } },
    h("h2", { id: "detail-title" }, `Node ${each.name}`),
    facts(
      ["Takes pods", each.cordoned ? "no, it is cordoned" : "yes"],
      ...view.answer.resources
        .filter((resource) => each.use[resource])
        .map((resource) => [resource, `${amount(resource, each.use[resource][0])} of ${amount(resource, each.use[resource][1])} in use, ${percent(share(each.use[resource]))}`]),
      view.marked ? ["Pods of the group", `${each.bound} bound, ${each.nominated} promised room`] : ["", ""],
    ),
    h("button", { type: "button", on: { click: () => panel.close() } }, "Close"),
  );
  document.body.append(panel);
  panel.showModal();
}

function rowsOf(block, path = []) {
  const own = block.key ? [{ ...block, path: [...path, block.value === null ? `no ${short(block.key)}` : block.value] }] : [];
  const here = own.length ? own[0].path : path;
  return [...own, ...block.blocks.flatMap((each) => rowsOf(each, here))];
}

function hostsOf(block, path = []) {
  const here = block.key ? [...path, block.value ?? `no ${short(block.key)}`] : path;
  return [...block.hosts.map((each) => ({ ...each, path: here })), ...block.blocks.flatMap((each) => hostsOf(each, here))];
}

function tables({ answer, marked }) {
  const uses = answer.resources.map((resource) => ({
    title: resource,
    number: true,
    cell: (row) => (row.use[resource] ? `${amount(resource, row.use[resource][0])} of ${amount(resource, row.use[resource][1])}` : "–"),
  }));
  const pods = marked ? [{ title: "pods of the group", number: true, cell: (row) => String(row.bound + row.nominated) }] : [];
  const domains = rowsOf(answer.block);
  const nodes = hostsOf(answer.block);
  return [
    domains.length
      ? table("Domains", [{ title: "domain", cell: (row) => row.path.join(" / ") }, { title: "nodes", number: true, cell: (row) => String(row.nodes) }, { title: "cordoned", number: true, cell: (row) => String(row.cordoned) }, ...uses, ...pods], domains)
      : null,
    nodes.length
      ? table("Nodes", [{ title: "node", cell: (row) => row.name }, { title: "domain", cell: (row) => row.path.join(" / ") }, { title: "cordoned", cell: (row) => (row.cordoned ? "yes" : "no") }, ...uses, ...pods], nodes)
      : h("p", {}, "Nodes are listed in a smaller domain: open one."),
  ];
}
