// What words mean comes from the server, which has it from the command line; here is how they look.
import { h, icon } from "./dom.js";

const meaning = JSON.parse(document.querySelector("meta[name=words]").content);
const mapOf = (list) => new Map(list.map((each, rank) => [each.word, { ...each, rank }]));
const words = { states: mapOf(meaning.states), healths: mapOf(meaning.healths), syncs: mapOf(meaning.syncs) };

const unknown = { tone: "plain", well: false, rank: 99 };
export const stateOf = (word) => words.states.get(word) ?? unknown;
export const healthOf = (word) => words.healths.get(word) ?? unknown;
const syncOf = (word) => words.syncs.get(word) ?? unknown;
export const stateWords = () => [...words.states.keys()];

// Shapes differ beside colours: an octagon for what failed, a triangle for what is ill, a clock for what is under way.
const special = { Failed: "bad", Unhealthy: "ill", Missing: "bad", Changed: "drift", "Not applied": "bad" };
const shapeOf = (word, tone) => special[word] ?? tone;

/** badge is a word with its shape and colour. */
export function badge(word, kind = "states") {
  const { tone } = kind === "states" ? stateOf(word) : kind === "healths" ? healthOf(word) : syncOf(word);
  return h("span", { class: `badge tone-${tone}` }, icon(shapeOf(word, tone), tone), word);
}

/** mark is the shape of a word alone. */
export function mark(word, kind = "states") {
  const { tone } = kind === "states" ? stateOf(word) : healthOf(word);
  return h("span", { class: `badge tone-${tone}` }, icon(shapeOf(word, tone), tone));
}

let skew = 0;
/** setNow takes in what time it is for the server. */
export function setNow(seconds) { skew = seconds - Date.now() / 1000; }
export const now = () => Date.now() / 1000 + skew;

/** age says how long ago something was, as kubectl does. */
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

/** moment is a time of the day, with the day if that is another one, and in full on hovering. */
export function moment(seconds) {
  const when = new Date(seconds * 1000), today = when.toDateString() === new Date(now() * 1000).toDateString();
  return h("time", { datetime: when.toISOString(), title: when.toLocaleString() }, today ? "" : `${when.toLocaleDateString([], { month: "short", day: "numeric" })} `, clockTime(seconds));
}

/** since is an age with the time in full on hovering. */
export function since(seconds) {
  if (!seconds) return "";
  return h("time", { datetime: new Date(seconds * 1000).toISOString(), title: new Date(seconds * 1000).toLocaleString() }, age(seconds));
}
