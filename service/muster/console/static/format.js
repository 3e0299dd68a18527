// Numbers, times and names as people read them.

import { badge, h } from "./dom.js";
import { link } from "./route.js";

const number = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const BYTES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const IN_BYTES = /^(memory|ephemeral-storage|hugepages-.*)$/;
const GOOD = new Set(["SUCCESS", "SCHEDULED", "UNCHANGED", "ACTIVE", "FITS_WITHOUT_PREEMPTION", "FOUND", "NOT_NEEDED"]);
const WAITING = new Set(["WAIT", "WAITING_FOR_PREEMPTION", "BACKOFF", "IN_FLIGHT", "GATED", "PENDING", "BUDGET_SPENT"]);

export function count(amount, noun) {
  return `${number.format(amount)} ${noun}${Number(amount) === 1 ? "" : "s"}`;
}

/** An amount of a resource in base units: cores for cpu, a binary unit for bytes. */
export function amount(resource, value) {
  if (resource === "cpu") return `${number.format(value / 1000)} cpu`;
  if (!IN_BYTES.test(resource)) return number.format(value);
  const power = Math.min(BYTES.length - 1, value > 0 ? Math.floor(Math.log2(value) / 10) : 0);
  return `${number.format(value / 1024 ** power)} ${BYTES[power]}`;
}

/** How much of a resource is in use, from 0 to 1; more if it is over-committed, 0 if none is offered. */
export function share([used, offered]) {
  return offered > 0 ? used / offered : 0;
}

export function percent(part) {
  return `${Math.round(part * 100)} %`;
}

/** The name of an enum's value without its prefix, as words. */
export function words(code) {
  return code.toLowerCase().replaceAll("_", " ");
}

/** A value of one of the API's enums, by its word. */
export function status(value, prefix) {
  const code = value.replace(prefix, "");
  const kind = GOOD.has(code) ? "good" : WAITING.has(code) ? "waiting" : "bad";
  return badge(words(code), kind);
}

export function milliseconds(nanoseconds) {
  if (nanoseconds < 1e6) return `${number.format(nanoseconds / 1e3)} µs`;
  return nanoseconds < 1e9 ? `${number.format(nanoseconds / 1e6)} ms` : `${number.format(nanoseconds / 1e9)} s`;
}

/** A duration in the API's JSON ("0.004s"). */
export function duration(text) {
  return text ? milliseconds(parseFloat(text) * 1e9) : "";
}

/** A time that is yet to come, nothing for one that is over. */
export function upcoming(text) {
  return text && Date.parse(text) > Date.now() ? moment(text) : "";
}

/** A time, as how long ago it was or is to come, with the time itself to be looked up. */
export function moment(text) {
  if (!text) return "";
  const seconds = (Date.now() - Date.parse(text)) / 1000;
  const far = Math.abs(seconds);
  const [value, unit] =
    far < 100 ? [far, "s"] : far < 6000 ? [far / 60, "min"] : far < 172_800 ? [far / 3600, "h"] : [far / 86_400, "d"];
  const told = `${Math.round(value)} ${unit}`;
  return h("time", { datetime: text, title: text }, seconds < 0 ? `in ${told}` : `${told} ago`);
}

/** An object by kind and name, as a link to the page of its unit; other kinds have no page. */
export function object(ref, shown = `${ref.kind} ${ref.namespace ? `${ref.namespace}/` : ""}${ref.name}`) {
  if (!["Pod", "PodGroup", "CompositePodGroup"].includes(ref.kind)) return shown;
  return h("a", { href: link(["unit", ref.kind, ref.namespace || "default", ref.name]) }, shown);
}
