// Calls of the REST server, which is all that the page knows.

/** Whose memory the page shows: the key, and the user and the space that were chosen. */
export const session = { token: null, user: null, space: null, me: null };

const TOKEN = "germane-token";
const MOST = 1000;

export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? `The server answered ${status}.`);
    this.status = status;
    this.body = body;
    this.title = body.title;
  }
}

/** An address whose values are encoded. */
export const at = (texts, ...values) =>
  texts.reduce((made, text, place) => made + encodeURIComponent(values[place - 1]) + text);

async function call(method, path, { query = {}, body, signal, everywhere } = {}) {
  const given = Object.entries(query).filter(
    ([, value]) => value !== null && value !== undefined && value !== "",
  );
  if (session.space && !everywhere) given.push(["space", session.space]);
  const headers = { Authorization: `Bearer ${session.token}` };
  if (session.user) headers["Germane-User"] = encodeURIComponent(session.user);
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const address = `/v1${path}${given.length ? `?${new URLSearchParams(given)}` : ""}`;
  const answer = await fetch(address, {
    method,
    headers,
    signal,
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const shape = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Problem(answer.status, shape);
  return shape;
}

/** What belongs to the agent in any space says so by `everywhere`. */
export const get = (path, query, more) => call("GET", path, { query, ...more });
export const post = (path, body = {}, more) => call("POST", path, { body, ...more });
export const remove = (path, query, more) => call("DELETE", path, { query, ...more });

/** All entries of a list that comes by pages, under its name in the answer. */
export async function all(path, name, more) {
  const found = [];
  let after = null;
  do {
    const page = await get(path, { limit: MOST, after }, more);
    found.push(...page[name]);
    ({ after } = page);
  } while (after !== null);
  return found;
}

export const can = (right) => session.me?.may.includes(right) ?? false;

/** Find the token: in the page's address, which then no longer shows it, or from this tab's session. */
export function readToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(TOKEN, given);
    history.replaceState(null, "", "#/playground");
  }
  session.token = sessionStorage.getItem(TOKEN);
}

export function useToken(token) {
  session.token = token;
  sessionStorage.setItem(TOKEN, token);
}

export function forgetToken() {
  session.token = session.me = session.user = session.space = null;
  sessionStorage.removeItem(TOKEN);
}
