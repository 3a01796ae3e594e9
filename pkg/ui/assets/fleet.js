// The fleet at a glance: namespaces or classes as tiles, and drift and fights of the last hour.
import { fill, h, icon } from "./dom.js";
import { get, store, watch } from "./data.js";
import { badge, since, stateOf, stateWords } from "./words.js";

const maxTiles = 600; // the list shows the others

export function showFleet(main, parameters, navigate) {
  let by = parameters.get("by") === "class" ? "class" : "namespace", stopped = false;
  const tiles = h("ul", { class: "tiles" }), total = h("div", { class: "total" }), drift = h("div", { class: "drift" });
  const choices = [["namespace", "Namespaces"], ["class", "Classes"]].map(([value, title]) => h("button", {
    type: "button", class: "chip", "data-by": value, onclick: () => { by = value; history.replaceState(history.state, "", `#/fleet${by === "class" ? "?by=class" : ""}`); update(); },
  }, title));
  fill(main, h("div", { class: "fleet" }, h("h1", { class: "hidden" }, "Fleet"), total,
    h("div", { class: "tools" }, h("h2", {}, "By"), h("div", { class: "chips", role: "group", "aria-label": "Tiles by" }, choices)), tiles,
    h("h2", {}, "Drift and fights of the last hour"), drift));

  function update() {
    for (const choice of choices) choice.setAttribute("aria-pressed", choice.dataset.by === by);
    const groups = new Map(), all = new Map();
    for (const row of store.rows.values()) {
      const name = row[by];
      if (!groups.has(name)) groups.set(name, { name, count: 0, objects: 0, states: new Map() });
      const group = groups.get(name);
      group.count++;
      group.objects += row.objects;
      group.states.set(row.state, (group.states.get(row.state) ?? 0) + 1);
      all.set(row.state, (all.get(row.state) ?? 0) + 1);
    }
    const count = store.rows.size, well = [...all].reduce((sum, [word, each]) => sum + (stateOf(word).well ? each : 0), 0);
    fill(total, count ? [h("p", { class: "big" }, h("b", {}, well), ` of ${count} `, h("span", { class: "faint" }, "ManagedResources are ready or suspended")), bar(all, count),
      h("p", { class: "legend" }, stateWords().filter((word) => all.has(word)).map((word) => h("a", { href: `#/?q=${encodeURIComponent(`state:${word.toLowerCase()}`)}` }, badge(word), " ", h("b", {}, all.get(word)))))]
      : h("p", { class: "empty" }, store.loaded ? "There are no ManagedResources." : "Reading ManagedResources"));
    const worst = (group) => Math.min(...[...group.states.keys()].map((word) => stateOf(word).rank));
    const sorted = [...groups.values()].sort((a, b) => worst(a) - worst(b) || (a.name < b.name ? -1 : 1));
    const focused = document.activeElement?.dataset?.tile;
    fill(tiles, sorted.slice(0, maxTiles).map((group) => tile(group, by)));
    if (sorted.length > maxTiles) tiles.append(h("li", { class: "more" }, `and ${sorted.length - maxTiles} more with fewer problems`));
    if (focused) tiles.querySelector(`[data-tile="${CSS.escape(focused)}"]`)?.focus();
  }

  async function readDrift() {
    try {
      const found = await get("activity");
      if (stopped) return;
      fill(drift, found.unseen && h("p", { class: "note" }, "Not shown, because you may not read them: Events."),
        !found.items.length && !found.unseen ? h("p", { class: "all-well" }, icon("good"), " No drift was corrected.") : "",
        found.items.length ? h("section", { class: "card" }, h("table", {}, h("tbody", {}, found.items.map((item) => h("tr", {},
          h("td", { class: "age" }, since(item.last)), h("td", {}, item.reason === "Contested" ? h("span", { class: "badge tone-bad" }, icon("bad", "bad"), "Fight") : h("span", { class: "badge tone-busy" }, icon("drift", "busy"), "Drift")),
          h("td", {}, h("a", { href: `#/mr/${encodeURIComponent(item.namespace)}/${encodeURIComponent(item.name)}?tab=history` }, `${item.namespace}/${item.name}`)),
          h("td", { class: "grow" }, item.message, item.count > 1 ? h("span", { class: "faint" }, ` (${item.count} times)`) : "")))))) : "");
    } catch (error) {
      if (!stopped) fill(drift, h("div", { class: "note bad", role: "alert" }, h("pre", {}, error.message)));
    }
  }

  update();
  readDrift();
  const stop = watch((changed) => { if (changed === null || changed.size > 0) update(); }), timer = setInterval(() => { if (!document.hidden && !store.cut) readDrift(); }, 15000);
  return { title: "Fleet", escape: () => navigate("/"), leave: () => { stopped = true; stop(); clearInterval(timer); } };
}

function tile(group, by) {
  const words = stateWords().filter((word) => group.states.has(word)), worst = words[0] ?? "Unknown";
  const query = `${by === "class" ? "class" : "ns"}:${group.name}`;
  const sum = words.map((word) => `${group.states.get(word)} ${word}`).join(", ");
  return h("li", { class: `tile edge-${stateOf(worst).tone}` }, h("a", { href: `#/?q=${encodeURIComponent(query)}`, "data-tile": group.name, title: sum },
    h("span", { class: "tile-name" }, group.name), " ", h("span", { class: "tile-state" }, badge(worst), words.length > 1 || group.count > 1 ? h("span", { class: "faint" }, ` ${group.states.get(worst)} of ${group.count}`) : ""),
    bar(group.states, group.count), h("span", { class: "faint tile-objects" }, `${group.objects} object${group.objects === 1 ? "" : "s"}`)));
}

function bar(states, count) {
  const element = h("span", { class: "bar", "aria-hidden": "true" });
  for (const word of stateWords().filter((each) => states.has(each))) {
    const part = h("span", { class: `part fill-${stateOf(word).tone}`, title: `${states.get(word)} ${word}` });
    part.style.flexGrow = states.get(word) / count;
    element.append(part);
  }
  return element;
}
