// The data of the page: rows, which server-sent events update, and details of one ManagedResource, which are read
// when it is shown.
import { setNow } from "./words.js";

export const store = {
  rows: new Map(), // by "namespace/name"
  scope: "this cluster", // describes the listed ManagedResources
  loaded: false, read: 0,
  lost: null, lostSince: 0, // the cluster is unreachable
  cut: null, cutSince: 0, // the server of this page is unreachable
  advice: " Check that kubectl mr ui is still running.",
  notice: "", // what is not shown, and why
  out: () => {}, // called with the refusal when the viewer must log in
};

const listeners = new Set();
/** watch calls a function with the names of changed rows: none if only the connection changed, null for all. It returns a function that ends this. */
export function watch(listener) { listeners.add(listener); return () => listeners.delete(listener); }

export const keyOf = (row) => `${row.namespace}/${row.name}`;

let events = null, sequence = "", retry = 0, timer = 0, silence = 0;

/** follow keeps the rows up to date. Hidden pages close the connection, because browsers limit connections per server, and resume it later. */
export function follow() {
  document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
  connect();
}

function disconnect() {
  clearTimeout(timer);
  clearTimeout(silence);
  events?.close();
  events = null;
}

function connect() {
  disconnect();
  if (store.left) return;
  events = new EventSource(`api/changes?since=${encodeURIComponent(sequence)}`);
  events.onmessage = (message) => {
    retry = 0;
    listen();
    sequence = message.lastEventId;
    take(JSON.parse(message.data));
  };
  events.onerror = () => again("The server of this page does not respond." + store.advice);
  listen();
}

// listen detects a connection without events. The server also sends events without changes.
function listen() {
  clearTimeout(silence);
  silence = setTimeout(() => again("The server of this page has sent nothing for a while."), 25000);
}

async function again(reason) {
  disconnect();
  const answer = await get("about").catch((error) => error);
  if (store.left) return;
  if (answer instanceof Refused && answer.status === 401) reason = "This browser is not logged in: " + answer.message;
  if (!store.cut) store.cutSince = Date.now() / 1000;
  store.cut = reason;
  tell(new Set());
  retry = Math.min(retry + 1, 6);
  if (!document.hidden) timer = setTimeout(connect, Math.min(250 * 2 ** retry, 10000));
}

function take(news) {
  setNow(news.now);
  store.cut = null;
  store.read = news.read ?? 0;
  store.lost = news.lost ?? null;
  store.lostSince = news.lostSince ?? 0;
  store.notice = news.notice ?? "";
  const changed = new Set(), first = !store.loaded;
  if (news.reset) store.rows = new Map();
  store.loaded = news.loaded;
  for (const row of news.rows ?? []) {
    row.text = `${row.namespace}/${row.name} ${row.state} ${row.class} ${row.message ?? ""}`.toLowerCase();
    store.rows.set(keyOf(row), row);
    changed.add(keyOf(row));
  }
  for (const name of news.gone ?? []) {
    const key = `${name.Namespace}/${name.Name}`;
    store.rows.delete(key);
    changed.add(key);
  }
  tell(news.reset || first ? null : changed);
}

function tell(changed) { for (const listener of [...listeners]) listener(changed); }

/** Refused is the error of a request. */
export class Refused extends Error {
  constructor(status, body) { super(body.error ?? `status ${status}`); Object.assign(this, { status, gone: body.gone, forbidden: body.forbidden, login: body.login }); }
}

// leave removes all data until the viewer has logged in again.
function leave(refused) {
  if (store.left) return;
  refused.again = store.loaded;
  disconnect();
  Object.assign(store, { rows: new Map(), loaded: false, lost: null, cut: null, notice: "", left: true });
  tell(new Set());
  store.out(refused);
}

/** unchanged is returned instead of a response that is the same as the previous one. */
export const unchanged = Symbol("unchanged");

/** get reads data. If tags has the tag of a previous response, it returns unchanged if the data is the same. */
export async function get(path, { signal, tags } = {}) {
  const headers = tags?.get(path) ? { "If-None-Match": tags.get(path) } : {};
  const response = await fetch(`api/${path}`, { headers, signal, cache: "no-store", credentials: "same-origin" });
  if (response.status === 304) return unchanged;
  const body = await response.json().catch(() => ({ error: `The server of this page responded with status ${response.status}.` }));
  if (!response.ok) {
    const refused = new Refused(response.status, body);
    if (refused.login) leave(refused);
    throw refused;
  }
  tags?.set(path, response.headers.get("ETag"));
  return body;
}

/** pathOf returns the path of a part of a ManagedResource. */
export const pathOf = (namespace, name, part) => `resources/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}/${part}`;
