// What is known: the rows, kept up to date by server-sent events, and what is read of one ManagedResource when it is shown.
import { setNow } from "./words.js";

export const store = {
  rows: new Map(), // by "namespace/name"
  scope: "this cluster", // which of them are listed
  loaded: false, read: 0,
  lost: null, lostSince: 0, // the cluster does not answer
  cut: null, cutSince: 0, // the server of this page does not answer
  advice: " Check that kubectl mr ui is still running.",
  notice: "", // what is not shown, and why
  out: () => {}, // called with a refusal when this viewer has to log in
};

const listeners = new Set();
/** watch calls a function with the names of rows that changed, none if only the connection did, null for all, until the function that it returns is called. */
export function watch(listener) { listeners.add(listener); return () => listeners.delete(listener); }

export const keyOf = (row) => `${row.namespace}/${row.name}`;

let events = null, sequence = "", retry = 0, timer = 0, silence = 0;

/** follow keeps the rows up to date. Hidden pages let go of the connection, as browsers have few for one server, and resume later. */
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
  events.onerror = () => again("The server of this page does not answer." + store.advice);
  listen();
}

// listen notices a connection on which nothing comes any more, not even that there is nothing new.
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

/** Refused says why there is no answer. */
export class Refused extends Error {
  constructor(status, body) { super(body.error ?? `status ${status}`); Object.assign(this, { status, gone: body.gone, forbidden: body.forbidden, login: body.login }); }
}

// leave drops what this viewer may see no more, until they have logged in again.
function leave(refused) {
  if (store.left) return;
  refused.again = store.loaded;
  disconnect();
  Object.assign(store, { rows: new Map(), loaded: false, lost: null, cut: null, notice: "", left: true });
  tell(new Set());
  store.out(refused);
}

/** unchanged stands for an answer that is the one before. */
export const unchanged = Symbol("unchanged");

/** get reads something; with the tag of a former answer only what differs from it. */
export async function get(path, { signal, tags } = {}) {
  const headers = tags?.get(path) ? { "If-None-Match": tags.get(path) } : {};
  const response = await fetch(`api/${path}`, { headers, signal, cache: "no-store", credentials: "same-origin" });
  if (response.status === 304) return unchanged;
  const body = await response.json().catch(() => ({ error: `The server of this page answers with status ${response.status}.` }));
  if (!response.ok) {
    const refused = new Refused(response.status, body);
    if (refused.login) leave(refused);
    throw refused;
  }
  tags?.set(path, response.headers.get("ETag"));
  return body;
}

/** pathOf is where a part of a ManagedResource is. */
export const pathOf = (namespace, name, part) => `resources/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}/${part}`;
