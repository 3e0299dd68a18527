// Where the reader is: #/PAGE/PART/...?name=value. The cluster and what a page was told stay in the address.

/** {parts, query} of the present address. */
export function here() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { parts: (path || "topology").split("/").map(decodeURIComponent), query: new URLSearchParams(query ?? "") };
}

/** The address of a page of the same cluster; parameters that are empty are left out, arrays are repeated. */
export function link(parts, parameters = {}) {
  const query = new URLSearchParams();
  const cluster = here().query.get("cluster");
  for (const [name, value] of Object.entries({ cluster, ...parameters })) {
    for (const each of [value].flat()) if (each !== null && each !== undefined && each !== "") query.append(name, each);
  }
  const path = parts.map(encodeURIComponent).join("/");
  return `#/${path}${query.size ? `?${query}` : ""}`;
}

/** The address of the present page with some parameters otherwise. */
export function otherwise(parameters) {
  const { parts, query } = here();
  const now = {};
  for (const name of new Set(query.keys())) now[name] = query.getAll(name);
  return link(parts, { ...now, ...parameters });
}

/** Goes there. */
export function go(address) {
  location.hash = address.slice(1);
}
