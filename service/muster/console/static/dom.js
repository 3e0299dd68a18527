// How elements are made. Text becomes text nodes, never markup: what an object holds cannot become part of the page.

/**
 * An element. Properties: `class`, `on` (listeners by event), `vars` (custom properties of its style), `data` (data-*
 * attributes); any other is an attribute, left out if null or false. Children: nodes, text, arrays of them; null is none.
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (name === "vars") {
      for (const [variable, text] of Object.entries(value)) element.style.setProperty(variable, text);
    } else if (name === "data") {
      Object.assign(element.dataset, value);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/** A table with a caption; `columns` are {title, cell(row), number}, the first is the row's header. */
export function table(caption, columns, rows, properties = {}) {
  const cells = (row) =>
    columns.map((column, index) =>
      h(index ? "td" : "th", { scope: index ? null : "row", class: column.number ? "number" : null }, column.cell(row)),
    );
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      properties,
      h("caption", {}, caption),
      h(
        "thead",
        {},
        h("tr", {}, columns.map((column) => h("th", { scope: "col", class: column.number ? "number" : null }, column.title))),
      ),
      h("tbody", {}, rows.map((row) => h("tr", {}, cells(row)))),
    ),
  );
}

/** A list of terms and what they are; entries without a value are left out. */
export function facts(...entries) {
  return h(
    "dl",
    { class: "facts" },
    entries
      .filter(([, value]) => value !== null && value !== undefined && value !== "")
      .map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", {}, value))),
  );
}

/** A status by word and colour. */
export function badge(word, kind) {
  return h("span", { class: `badge ${kind}` }, word);
}

/** Arrow keys move among the children that match, one of which is in the order of the Tab key. */
export function roving(container, selector) {
  const all = () => [...container.querySelectorAll(selector)];
  all().forEach((element, index) => element.setAttribute("tabindex", index ? "-1" : "0"));
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  container.addEventListener("keydown", (event) => {
    const elements = all();
    const at = elements.indexOf(document.activeElement);
    let to = at + (step[event.key] ?? 0);
    if (event.key === "Home") to = 0;
    if (event.key === "End") to = elements.length - 1;
    if (at < 0 || to === at || !elements[to]) return;
    event.preventDefault();
    elements[at].setAttribute("tabindex", "-1");
    elements[to].setAttribute("tabindex", "0");
    elements[to].focus();
  });
  return container;
}
