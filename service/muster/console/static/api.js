// Questions to the service, and the token that goes with them.

const TOKEN = "muster-token";

export class Refused extends Error {
  constructor(status, told) {
    super(told.message);
    this.status = status;
    this.reason = told.reason;
    this.violations = told.violations ?? [];
  }
}

export const token = {
  get: () => sessionStorage.getItem(TOKEN) ?? "",
  set: (text) => sessionStorage.setItem(TOKEN, text),
  forget: () => sessionStorage.removeItem(TOKEN),
};

/** What a view answers; parameters that are empty are left out, arrays are repeated. Throws `Refused`. */
export async function ask(view, parameters, signal) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const each of [value].flat()) if (each !== "" && each !== null && each !== undefined) query.append(name, each);
  }
  const headers = token.get() ? { Authorization: `Bearer ${token.get()}` } : {};
  const response = await fetch(`api/${view}?${query}`, { headers, signal, credentials: "omit" });
  if (response.ok) return response.json();
  const told = await response.json().catch(() => ({ error: { reason: "HTTP", message: `status ${response.status}` } }));
  throw new Refused(response.status, told.error);
}
