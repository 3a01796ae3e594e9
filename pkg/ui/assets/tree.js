// The objects of a ManagedResource, down to Pods.
import { fill, h, icon, say } from "./dom.js";
import { Virtual } from "./virtual.js";
import { badge, healthOf, since } from "./words.js";

const nameOf = (node) => `${node.kind}/${node.namespace ?? ""}/${node.name}`;

export function showTree(panel, { parameters, path }) {
  let nodes = [], more = 0, unknown = "", filter = "", unwell = false, chosen = parameters.get("object");
  const folded = new Set();
  const input = h("input", {
    type: "search", placeholder: "Filter objects", "aria-label": "Filter objects", autocomplete: "off", spellcheck: "false",
    oninput: () => { filter = input.value.toLowerCase(); update(); },
    onkeydown: (event) => {
      if (event.key === "Escape") { clear(); event.stopPropagation(); }
      if (event.key === "Enter" || event.key === "ArrowDown") { table.element.focus(); event.preventDefault(); }
    },
  });
  const unwellCount = h("b", {});
  const toggle = h("button", { type: "button", class: "chip", "aria-pressed": false, onclick: () => { unwell = !unwell; toggle.setAttribute("aria-pressed", unwell); update(); } }, "Only unhealthy ", unwellCount);
  const count = h("p", { class: "count", role: "status" });
  const facts = h("div", { class: "facts-of", "aria-live": "polite", hidden: true });
  const empty = h("p", { class: "empty", hidden: true });
  const table = new Virtual({
    role: "treegrid", label: "Objects", keyOf: (node) => node.key,
    columns: [{ title: "Object", class: "object" }, { title: "Health", class: "health" }, { title: "Applied", class: "sync" }, { title: "Age", class: "age" }, { title: "Detail", class: "message" }],
    attributes: (node) => ({
      "aria-level": node.level, "aria-expanded": node.parent ? !folded.has(node.key) : null, "aria-setsize": node.setsize, "aria-posinset": node.position,
    }),
    render: (node) => [objectCell(node), healthOfNode(node), node.sync ? badge(node.sync, "syncs") : "",
      since(node.created), h("span", { title: textOf(node) }, textOf(node))],
    open: (node) => choose(node), chosen: (node) => { if (!facts.hidden) choose(node); },
    keys: (key, node, index) => onKey(key, node, index),
  });
  fill(panel, h("div", { class: "tools" }, input, toggle, count), table.element, empty, facts);

  function objectCell(node) {
    const indent = h("span", { class: "indent" });
    indent.style.width = `${(node.level - 1) * 18}px`;
    return [indent, h("span", { class: "twist" }, node.parent ? icon(folded.has(node.key) ? "closed" : "open", "twist-icon") : ""),
      h("span", { class: "kind" }, node.kind), " ", h("span", { class: "object-name", title: `${node.namespace ? `${node.namespace}/` : ""}${node.name}` },
        node.level === 1 && node.namespace ? h("span", { class: "namespace" }, `${node.namespace}/`) : "", node.name)];
  }

  function onKey(key, node, index) {
    const open = node.parent && !folded.has(node.key);
    if ((key === "ArrowLeft" && open) || (key === "ArrowRight" && node.parent && !open) || (key === " " && node.parent)) {
      folded[open ? "add" : "delete"](node.key);
      update();
      return true;
    }
    if (key === "ArrowRight" && open) table.choose(index + 1);
    else if (key === "ArrowLeft" && node.level > 1) {
      for (let at = index - 1; at >= 0; at--) if (table.items[at].level < node.level) { table.choose(at); break; }
    } else return false;
    return true;
  }

  function choose(node) {
    chosen = nameOf(node);
    history.replaceState(history.state, "", `#${path(`&object=${encodeURIComponent(chosen)}`)}`);
    facts.hidden = false;
    const told = JSON.stringify([node.key, node.health, node.sync, node.detail, node.why]);
    if (facts.dataset.told === told) return;
    facts.dataset.told = told;
    fill(facts, h("div", { class: "facts-head" }, h("h2", {}, h("span", { class: "kind" }, node.kind), " ", node.namespace ? `${node.namespace}/` : "", node.name),
      h("button", { type: "button", class: "plain", "aria-label": "Close", onclick: () => close() }, "×")),
      h("p", { class: "facts" }, healthOfNode(node), node.sync ? badge(node.sync, "syncs") : "", h("span", {}, node.api), node.created ? h("span", {}, "created ", since(node.created), " ago") : ""),
      node.why && h("p", { class: "text" }, node.why), node.detail && node.detail !== node.why && h("p", { class: "text" }, node.detail),
      h("p", { class: "command" }, h("code", {}, `kubectl get ${resourceOf(node)} ${node.name}${node.namespace ? ` -n ${node.namespace}` : ""} -o yaml`)));
  }
  function close() {
    if (facts.hidden) return false;
    facts.hidden = true;
    chosen = null;
    history.replaceState(history.state, "", `#${path("")}`);
    table.element.focus();
    return true;
  }

  function clear() { input.value = filter = ""; update(); table.element.focus(); }

  function update() {
    const matches = (node) => (!unwell || (!unknown && !node.well)) && (!filter || node.text.includes(filter));
    let shown;
    if (filter || unwell) { // matching nodes, with their ancestors
      const keep = new Array(nodes.length).fill(false);
      for (const [at, node] of nodes.entries()) if (matches(node)) for (let up = at; up >= 0 && !keep[up]; up = nodes[up].above) keep[up] = true;
      shown = nodes.filter((_, at) => keep[at]);
    } else shown = nodes;
    if (folded.size) {
      let hidden = Infinity;
      shown = shown.filter((node) => {
        if (node.level > hidden) return false;
        hidden = folded.has(node.key) ? node.level : Infinity;
        return true;
      });
    }
    table.set(shown);
    const ill = nodes.filter((node) => !node.well).length;
    say(count, `${shown.length === nodes.length ? nodes.length : `${shown.length} of ${nodes.length}`} objects${more ? `, ${more} more omitted` : ""}${unknown && `, ${unknown}`}`);
    say(unwellCount, unknown ? "" : `${ill}`);
    toggle.classList.toggle("some", !unknown && ill > 0);
    empty.hidden = shown.length > 0;
    table.element.hidden = shown.length === 0;
    fill(empty, nodes.length ? (unwell && unknown ? "The health of the objects is not known yet." : unwell && !filter ? "No unhealthy objects." : "No object matches the filter.") : "It has no objects.");
  }

  return {
    paint(value, partial) {
      [nodes, more, unknown] = [link(value.nodes), value.more ?? 0, partial ? "reading their health" : ""];
      if (!partial && !performance.getEntriesByName("known").length) performance.mark("known"); // for measurements
      update();
      if (chosen) {
        const node = nodes.find((each) => nameOf(each) === chosen);
        if (node) { if (facts.hidden) table.chooseKey(node.key); choose(node); }
      }
      if (document.activeElement === document.body || document.activeElement?.id === "main") table.element.focus({ preventScroll: true });
    },
    // If only the inventory is known, report that the health is unknown.
    fail() { if (unknown) { unknown = "their health could not be read"; update(); } },
    search: () => { input.focus(); input.select(); },
    escape: () => { if (close()) return true; if (filter) { clear(); return true; } return false; },
    leave: () => table.destroy(),
  };
}

const healthOfNode = (node) => (node.health ? badge(node.health, "healths") : h("span", { class: "faint" }, "…"));
const textOf = (node) => (node.why && !(node.detail ?? "").includes(":") ? node.why : node.detail ?? "");

/** link determines the parents of nodes, and gives each node a key. */
function link(list) {
  const path = [], sets = [];
  for (const [at, node] of list.entries()) {
    path.length = node.level - 1;
    const above = path.length ? path.at(-1) : -1;
    node.above = above;
    node.key = `${above >= 0 ? list[above].key : ""}>${nameOf(node)}`;
    node.text = `${node.kind} ${node.namespace ?? ""}/${node.name} ${node.health ?? ""} ${node.sync ?? ""} ${textOf(node)}`.toLowerCase();
    node.well = healthOf(node.health).well && (!node.sync || node.sync === "Synced");
    node.parent = list[at + 1]?.level > node.level;
    (sets[above + 1] ??= []).push(node);
    path.push(at);
  }
  for (const set of sets) set?.forEach((node, at) => { node.position = at + 1; node.setsize = set.length; });
  return list;
}

function resourceOf(node) {
  const group = node.api.includes("/") ? node.api.split("/")[0] : "";
  return node.kind.toLowerCase() + (group ? `.${group}` : "");
}
