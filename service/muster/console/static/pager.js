// From one page of a long list to the next: tokens are the service's, the way back is the browser's.

import { h } from "./dom.js";
import { otherwise } from "./route.js";

export function pager(query, nextPageToken) {
  const first = query.get("page") ? h("a", { href: otherwise({ page: "" }) }, "First page") : null;
  const next = nextPageToken ? h("a", { href: otherwise({ page: nextPageToken }) }, "Next page") : null;
  return first || next ? h("nav", { class: "pager", "aria-label": "Pages of the list" }, first, next) : null;
}

/** Chips that choose one value of a parameter, or all: [value, text] each. */
export function chips(label, query, name, values) {
  const chosen = query.get(name) ?? "";
  return h(
    "ul",
    { class: "chips", "aria-label": label },
    values.map(([value, text]) =>
      h("li", {}, h("a", { href: otherwise({ [name]: value, page: "" }), "aria-current": value === chosen ? "true" : null, data: { key: `${name} ${value}` } }, text)),
    ),
  );
}
