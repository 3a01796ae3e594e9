// The list of ManagedResources. Those that need attention come first.
import { fill, h, say } from "./dom.js";
import { keyOf, store, watch } from "./data.js";
import { Virtual } from "./virtual.js";
import { badge, mark, since, stateOf, stateWords } from "./words.js";

const orders = {
  attention: (a, b) => stateOf(a.state).rank - stateOf(b.state).rank,
  changed: (a, b) => (b.since ?? 0) - (a.since ?? 0),
  created: (a, b) => (b.created ?? 0) - (a.created ?? 0),
  objects: (a, b) => b.objects - a.objects,
  name: () => 0,
};
const text = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const byName = (a, b) => text(a.namespace, b.namespace) || text(a.name, b.name);

/** matcher returns the test of a filter. All words must match. The prefixes ns:, state:, class: and name: select a field, and - negates a word. */
export function matcher(filter) {
  const tests = filter.toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
    const not = word.startsWith("-") && word.length > 1;
    if (not) word = word.slice(1);
    const [, field, value] = word.match(/^(ns|namespace|state|class|name):(.*)$/) ?? [];
    const test = !field ? (row) => row.text.includes(word)
      : field === "ns" || field === "namespace" ? (row) => glob(row.namespace.toLowerCase(), value)
      : field === "state" ? (row) => value.split(",").some((each) => each === "unwell" ? !stateOf(row.state).well : row.state.toLowerCase().startsWith(each))
      : field === "class" ? (row) => glob(row.class.toLowerCase(), value)
      : (row) => row.name.toLowerCase().includes(value);
    return not ? (row) => !test(row) : test;
  });
  return (row) => tests.every((test) => test(row));
}

function glob(text, pattern) {
  const parts = pattern.split("*");
  if (parts.length === 1) return text === pattern;
  if (!text.startsWith(parts[0]) || !text.endsWith(parts.at(-1))) return false;
  let at = 0;
  return parts.every((part) => (at = text.indexOf(part, at)) >= 0 && (at += part.length) >= 0);
}

let place = null; // the selected row when the list was left

export function showList(main, parameters, navigate) {
  let filter = parameters.get("q") ?? "", order = parameters.get("order") ?? "attention";
  const input = h("input", {
    type: "search", id: "filter", placeholder: "Filter: words, ns:garden, state:failed, -ready", "aria-label": "Filter ManagedResources",
    autocomplete: "off", spellcheck: "false", oninput: () => { filter = input.value; remember(); update(); },
    onkeydown: (event) => {
      if (event.key === "Escape") { input.value = filter = ""; remember(); update(); table.element.focus(); event.stopPropagation(); }
      if (event.key === "Enter" || event.key === "ArrowDown") { table.element.focus(); event.preventDefault(); }
    },
  });
  input.value = filter;
  const select = h("select", { "aria-label": "Order", onchange: () => { order = select.value; remember(); update(); } },
    [["attention", "Needs attention"], ["changed", "Last change"], ["created", "Newest"], ["objects", "Most objects"], ["name", "Name"]]
      .map(([value, title]) => h("option", { value, selected: value === order }, title)));
  const chips = h("div", { class: "chips", role: "group", "aria-label": "States" });
  const count = h("p", { class: "count", role: "status", title: "ManagedResources" });
  const empty = h("div", { class: "empty", hidden: true });
  const table = new Virtual({
    role: "grid", label: "ManagedResources", keyOf,
    columns: [
      { title: "State", class: "state" }, { title: "Name", class: "name" }, { title: "Class", class: "class" },
      { title: "Objects", class: "number" }, { title: "Since", class: "age" }, { title: "Age", class: "age created" }, { title: "Message", class: "message" },
    ],
    render: (row) => [
      badge(row.state),
      [h("span", { class: "namespace" }, row.namespace, h("span", { class: "slash" }, "/")),
        h("a", { href: `#/mr/${encodeURIComponent(row.namespace)}/${encodeURIComponent(row.name)}`, tabindex: -1, title: keyOf(row) }, row.name)],
      row.class, row.objects, since(row.since), since(row.created), h("span", { title: row.message }, row.message),
    ],
    open: (row) => navigate(`/mr/${encodeURIComponent(row.namespace)}/${encodeURIComponent(row.name)}`),
  });
  fill(main, h("h1", { class: "hidden" }, "ManagedResources"),
    h("div", { class: "tools" }, input, chips, select, count), table.element, empty);

  const remember = () => {
    const query = new URLSearchParams();
    if (filter) query.set("q", filter);
    if (order !== "attention") query.set("order", order);
    history.replaceState(history.state, "", `#/${query.size ? `?${query}` : ""}`);
  };

  function update() {
    const matches = matcher(filter), compare = orders[order] ?? orders.attention;
    const rows = [...store.rows.values()];
    const shown = rows.filter(matches).sort((a, b) => compare(a, b) || byName(a, b));
    table.element.classList.toggle("one-class", rows.every((row) => row.class === rows[0].class));
    table.set(shown);
    paintChips(rows);
    say(count, shown.length === rows.length ? `${rows.length}` : `${shown.length} of ${rows.length}`);
    paintEmpty(rows.length, shown.length);
  }

  function paintChips(rows) {
    const counts = new Map();
    for (const row of rows) counts.set(row.state, (counts.get(row.state) ?? 0) + 1);
    const focused = document.activeElement?.dataset?.state;
    fill(chips, stateWords().filter((word) => counts.has(word)).map((word) => {
      const term = `state:${word.toLowerCase()}`, on = filter.toLowerCase().split(/\s+/).includes(term);
      return h("button", {
        type: "button", class: `chip tone-${stateOf(word).tone}`, "aria-pressed": on, "data-state": word,
        title: on ? `Also show states other than ${word}` : `Show only ${word}`,
        onclick: () => {
          const rest = filter.split(/\s+/).filter((each) => each && !each.toLowerCase().startsWith("state:"));
          input.value = filter = [...rest, ...(on ? [] : [term])].join(" ");
          remember();
          update();
        },
      }, mark(word), h("span", { class: "word" }, word), " ", h("b", {}, counts.get(word)));
    }));
    if (focused) chips.querySelector(`[data-state="${focused}"]`)?.focus();
  }

  function paintEmpty(all, shown) {
    empty.hidden = shown > 0;
    table.element.hidden = shown === 0;
    if (shown > 0) return;
    if (!store.loaded) fill(empty, h("p", {}, store.read ? `Reading ManagedResources: ${store.read} so far` : "Reading ManagedResources"), h("div", { class: "working" }));
    else if (all > 0) fill(empty, h("p", {}, `None of ${all} ManagedResources matches the filter.`), h("p", { class: "faint" }, "Esc clears it."));
    else fill(empty, h("p", {}, `There are no ManagedResources in ${store.scope}.`));
  }

  update();
  if (place) table.chooseKey(place);
  const stop = watch((changed) => { if (changed === null || changed.size > 0) update(); });
  const ages = setInterval(() => table.paint(true), 10000);
  if (parameters.get("focus") !== "filter") table.element.focus({ preventScroll: true });
  return {
    title: "ManagedResources", search: () => { input.focus(); input.select(); },
    escape: () => { if (filter) { input.value = filter = ""; remember(); update(); } },
    leave: () => { place = table.chosenKey(); stop(); clearInterval(ages); table.destroy(); },
  };
}
