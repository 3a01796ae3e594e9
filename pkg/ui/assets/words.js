// The server provides the meaning of words. This file defines how they look.
import { h, icon } from "./dom.js";

const meaning = JSON.parse(document.querySelector("meta[name=words]").content);
const mapOf = (list) => new Map(list.map((each, rank) => [each.word, { ...each, rank }]));
const words = { states: mapOf(meaning.states), healths: mapOf(meaning.healths), syncs: mapOf(meaning.syncs) };

const unknown = { tone: "plain", well: false, rank: 99 };
export const stateOf = (word) => words.states.get(word) ?? unknown;
export const healthOf = (word) => words.healths.get(word) ?? unknown;
const syncOf = (word) => words.syncs.get(word) ?? unknown;
export const stateWords = () => [...words.states.keys()];

// Shapes differ in addition to colours: an octagon for failures, a triangle for unhealthy objects, a clock for work
// in progress.
const special = { Failed: "bad", Unhealthy: "ill", Missing: "bad", Changed: "drift", "Not applied": "bad" };
const shapeOf = (word, tone) => special[word] ?? tone;

/** badge returns a word with its shape and colour. */
export function badge(word, kind = "states") {
  const { tone } = kind === "states" ? stateOf(word) : kind === "healths" ? healthOf(word) : syncOf(word);
  return h("span", { class: `badge tone-${tone}` }, icon(shapeOf(word, tone), tone), word);
}

/** mark returns only the shape of a word. */
export function mark(word, kind = "states") {
  const { tone } = kind === "states" ? stateOf(word) : healthOf(word);
  return h("span", { class: `badge tone-${tone}` }, icon(shapeOf(word, tone), tone));
}

let skew = 0;
/** setNow sets the current time of the server. */
export function setNow(seconds) { skew = seconds - Date.now() / 1000; }
export const now = () => Date.now() / 1000 + skew;

/** age returns the time since a point in time, in the format of kubectl. */
export function age(seconds) {
  if (!seconds) return "";
  const s = Math.max(0, Math.floor(now() - seconds));
  if (s < 120) return `${s}s`;
  const m = Math.floor(s / 60);
  if (m < 10) return s % 60 ? `${m}m${s % 60}s` : `${m}m`;
  if (m < 180) return `${m}m`;
  const hours = Math.floor(m / 60);
  if (hours < 8) return m % 60 ? `${hours}h${m % 60}m` : `${hours}h`;
  if (hours < 48) return `${hours}h`;
  const d = Math.floor(hours / 24);
  if (d < 8) return hours % 24 ? `${d}d${hours % 24}h` : `${d}d`;
  if (d < 730) return `${d}d`;
  return `${Math.floor(d / 365)}y`;
}

export const clockTime = (seconds) => new Date(seconds * 1000).toLocaleTimeString([], { hour12: false });

/** moment returns a time of day, with the day unless it is today. The tooltip contains the full time. */
export function moment(seconds) {
  const when = new Date(seconds * 1000), today = when.toDateString() === new Date(now() * 1000).toDateString();
  return h("time", { datetime: when.toISOString(), title: when.toLocaleString() }, today ? "" : `${when.toLocaleDateString([], { month: "short", day: "numeric" })} `, clockTime(seconds));
}

/** since returns an age. The tooltip contains the full time. */
export function since(seconds) {
  if (!seconds) return "";
  return h("time", { datetime: new Date(seconds * 1000).toISOString(), title: new Date(seconds * 1000).toLocaleString() }, age(seconds));
}
