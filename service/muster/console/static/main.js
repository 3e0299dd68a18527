// Which page is shown, for which cluster, and when it is asked again.

import { ask, Refused, token } from "./api.js";
import { decision } from "./decision.js";
import { decisions } from "./decisions.js";
import { h } from "./dom.js";
import { groups } from "./groups.js";
import { queue } from "./queue.js";
import { go, here, link } from "./route.js";
import { topology } from "./topology.js";
import { unit } from "./unit.js";

// A page: `seconds` between two looks (0: once), `show` makes its content from the route and what it asks.
const PAGES = { topology, queue, groups, unit, decisions, decision };
const page = document.getElementById("page");
const note = document.getElementById("status");
const live = document.getElementById("live");
const clusters = document.getElementById("cluster");
const signOut = document.getElementById("sign-out");

// A page stands still for so long after somebody typed or chose something on it.
const HANDS_OFF_MILLISECONDS = 15_000;

let asking = null;
let timer = 0;
let shown = "";
let touched = 0;

function say(text) {
  if (note.textContent !== text) note.textContent = text;
}

/** Puts new content in place; the focus stays on what has the same key, and open details stay open. */
function place(content) {
  const focused = document.activeElement?.closest("[data-key]")?.dataset.key;
  const open = new Map([...page.querySelectorAll("details[data-key]")].map((each) => [each.dataset.key, each.open]));
  page.replaceChildren(...[content].flat());
  for (const each of page.querySelectorAll("details[data-key]")) each.open = open.get(each.dataset.key) ?? each.open;
  if (focused) [...page.querySelectorAll("[data-key]")].find((each) => each.dataset.key === focused)?.focus();
}

function heading(text) {
  document.title = `${text} · Muster`;
  return h("h1", {}, text);
}

function refusal(error) {
  if (error instanceof Refused && error.status === 401) return signIn(error);
  const faults = (error.violations ?? []).map((each) => h("li", {}, `${each.field}: ${each.description}`));
  return [
    heading("This cannot be shown"),
    h("p", { role: "alert", class: "alert" }, error.message, error.reason ? ` (${error.reason})` : ""),
    faults.length ? h("ul", {}, faults) : null,
  ].filter(Boolean);
}

function signIn(error) {
  const field = h("input", { type: "password", id: "token", autocomplete: "off", required: true, data: { key: "token" } });
  const form = h(
    "form",
    {
      class: "sign-in",
      on: {
        submit(event) {
          event.preventDefault();
          token.set(field.value.trim());
          start();
        },
      },
    },
    h("label", { for: "token" }, "Token"),
    field,
    h("button", {}, "Sign in"),
  );
  const text = token.get() ? error.message : "This service wants to know who reads. A token of any role will do; it is kept until this tab is closed.";
  return [heading("Sign in"), h("p", { role: "alert" }, text), form];
}

function mark(name) {
  const top = { unit: "queue", decision: "decisions" }[name] ?? name;
  for (const each of document.querySelectorAll("nav [data-page]")) {
    each.href = link([each.dataset.page]);
    if (each.dataset.page === top) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
}

/** Whether new content would take away what somebody is typing, choosing or marking. */
function isInUse() {
  const focused = document.activeElement;
  const isFilled = page.contains(focused) && focused.matches("input:not([type=checkbox]), select");
  return (isFilled && Date.now() - touched < HANDS_OFF_MILLISECONDS) || !getSelection().isCollapsed;
}

function lookAgain(seconds) {
  timer = setTimeout(() => (isInUse() ? lookAgain(1) : look()), seconds * 1000);
}

/** Asks for the page of the present address and shows it. */
async function look() {
  clearTimeout(timer);
  asking?.abort();
  asking = new AbortController();
  const { signal } = asking;
  const { parts, query } = here();
  const chosen = PAGES[parts[0]] ?? topology;
  const isNew = shown !== location.hash;
  mark(parts[0]);
  if (isNew) page.setAttribute("aria-busy", "true");
  try {
    const content = await chosen.show({ parts, query, cluster: query.get("cluster") ?? "", signal, heading, say, look });
    if (signal.aborted) return;
    place(content);
    if (isNew) say(document.title.split(" · ")[0]);
  } catch (error) {
    if (signal.aborted) return;
    if (isNew || error instanceof Refused) place(refusal(error));
    else say(`No answer: ${error.message}`);
  }
  page.removeAttribute("aria-busy");
  if (isNew && shown) page.focus({ preventScroll: true });
  if (isNew) scrollTo(0, 0);
  shown = location.hash;
  const isLive = live.getAttribute("aria-pressed") === "true";
  if (isLive && chosen.seconds && !document.hidden) lookAgain(chosen.seconds);
}

async function listClusters() {
  const answer = await ask("clusters", {});
  const chosen = here().query.get("cluster") || "default";
  clusters.replaceChildren(
    ...answer.clusters.map(({ name }) => h("option", { value: name, selected: name === chosen }, name)),
  );
  document.getElementById("version").textContent = `Muster ${answer.version}`;
  signOut.hidden = !token.get();
}

async function start() {
  try {
    await listClusters();
  } catch (error) {
    signOut.hidden = !token.get();
    place(refusal(error));
    return;
  }
  await look();
}

for (const event of ["keydown", "pointerdown"]) page.addEventListener(event, () => (touched = Date.now()));
live.addEventListener("click", () => {
  const pressed = live.getAttribute("aria-pressed") !== "true";
  live.setAttribute("aria-pressed", String(pressed));
  if (pressed) look();
  else clearTimeout(timer);
});
signOut.addEventListener("click", () => {
  token.forget();
  start();
});
clusters.addEventListener("change", () => {
  const { parts } = here();
  const top = { unit: "queue", decision: "decisions" }[parts[0]] ?? parts[0];
  go(`#/${top}?${new URLSearchParams({ cluster: clusters.value })}`);
});
document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : look()));
document.querySelector(".skip").addEventListener("click", (event) => {
  // The address says which page is shown, and stays.
  event.preventDefault();
  page.focus();
});
addEventListener("hashchange", look);
start();
