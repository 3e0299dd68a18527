// Groups by name, as a way to the page of one, or to where it runs.

import { ask } from "./api.js";
import { h, table } from "./dom.js";
import { object } from "./format.js";
import { go, link, otherwise } from "./route.js";

const MOST = 50;

export const groups = { seconds: 0, show };

async function show({ query, cluster, signal, heading }) {
  const text = query.get("text") ?? "";
  const found = await ask("groups", { cluster, text }, signal);
  const field = h("input", { id: "text", type: "search", value: text, data: { key: "text" } });
  const form = h(
    "form",
    {
      class: "controls",
      role: "search",
      on: {
        submit(event) {
          event.preventDefault();
          go(otherwise({ text: field.value.trim() }));
        },
      },
    },
    h("label", { for: "text" }, "Name contains"),
    field,
    h("button", {}, "Find"),
  );
  return [
    heading("Groups"),
    form,
    found.length ? table("Groups", COLUMNS, found) : h("p", { class: "empty" }, "There is no such group."),
    found.length === MOST ? h("p", {}, `These are the first ${MOST}; a longer text finds fewer.`) : null,
  ].filter(Boolean);
}

const COLUMNS = [
  { title: "group", cell: (each) => object(each) },
  { title: "parent", cell: ({ parent }) => parent || "–" },
  { title: "pods bound", number: true, cell: ({ bound }) => String(bound) },
  { title: "pods waiting", number: true, cell: ({ pending }) => String(pending) },
  {
    title: "where",
    cell: (each) =>
      h("a", { href: link(["topology"], { group: `${each.kind}/${each.namespace}/${each.name}` }), "aria-label": `${each.name} in the topology` }, "in the topology"),
  },
];
