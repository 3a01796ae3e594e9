// One ManagedResource: its header, and one of its tabs.
import { fill, h, icon, say } from "./dom.js";
import { get, keyOf, pathOf, store, unchanged, watch } from "./data.js";
import { showDiff, showEvents, showHistory, showWhy } from "./tabs.js";
import { showTree } from "./tree.js";
import { badge, clockTime, since, stateOf } from "./words.js";

const tabs = [
  ["tree", "Tree", "objects", showTree], ["why", "Why", "why", showWhy], ["diff", "Diff", "diff", showDiff],
  ["events", "Events", "events", showEvents], ["history", "History", "history", showHistory],
];
// Intervals in milliseconds at which data is read again, because objects change without the ManagedResource.
const againUnwell = 5000, againWell = 30000, least = 1000;

export function showOne(main, namespace, name, parameters, navigate) {
  const key = `${namespace}/${name}`, base = `/mr/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  const row = store.rows.get(key);
  const chosen = parameters.get("tab") ?? (row && !stateOf(row.state).well ? "why" : "tree");
  const [tab, , part, show] = tabs.find(([each]) => each === chosen) ?? tabs[0];
  const abort = new AbortController(), tags = new Map();
  let reading = false, stale = false, readAt = 0, began = 0, view = null, last = null, gone = false, seen = false, failed = false, stopped = false;

  const head = h("div", { class: "head" }), notes = h("div", { class: "notes" }), progress = h("p", { class: "progress" });
  const panel = h("section", { class: `panel panel-${tab}`, role: "tabpanel", id: "panel", "aria-labelledby": `tab-${tab}` });
  const links = tabs.map(([id, title]) => h("button", {
    type: "button", role: "tab", id: `tab-${id}`, "aria-selected": id === tab, "aria-controls": id === tab ? "panel" : null, tabindex: id === tab ? 0 : -1,
    onclick: () => navigate(`${base}?tab=${id}`, true),
    onkeydown: (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const [next] = tabs[(tabs.findIndex(([each]) => each === tab) + step + tabs.length) % tabs.length];
      navigate(`${base}?tab=${next}`, true);
      document.getElementById(`tab-${next}`)?.focus();
      event.preventDefault();
    },
  }, title));
  const again = h("button", { type: "button", class: "plain again", title: "Read again (r)", onclick: () => refresh() }, "Read again");
  fill(main, h("div", { class: "one" }, head,
    h("div", { class: "tabs" }, h("div", { role: "tablist", "aria-label": "Parts" }, links), progress, again), notes, panel));

  function paintHead(summary) {
    const is = summary ?? store.rows.get(key) ?? last; // the last state of a deleted ManagedResource
    last = is;
    seen ||= Boolean(is);
    fill(head,
      h("a", { class: "back", href: back(), "aria-label": "Back to the list", title: "Back to the list (Esc)" }, icon("back")),
      h("div", { class: "title" },
        h("h1", {}, h("span", { class: "namespace" }, namespace, h("span", { class: "slash" }, "/")), name),
        gone ? h("span", { class: "badge tone-faint" }, seen ? "Deleted" : "Not found") : is && h("span", { class: "is" }, badge(is.state), is.since ? h("span", { class: "faint" }, "for ", since(is.since)) : "")),
      is && h("p", { class: "facts" }, [
        `class ${is.class}`, `${is.objects} object${is.objects === 1 ? "" : "s"}`, is.created ? ["created ", since(is.created), " ago"] : null,
        summary?.secrets ? `Secret${summary.secrets.length === 1 ? "" : "s"} ${summary.secrets.slice(0, 3).join(", ")}${summary.secrets.length > 3 ? ` and ${summary.secrets.length - 3} more` : ""}` : null,
        summary?.keepsObjects ? "keeps its objects on deletion" : null,
      ].filter(Boolean).map((fact) => h("span", {}, fact)),
      (summary?.dependsOn ?? []).map((each) => h("span", {}, "waits for ", link(each.name), strength(each))),
      (summary?.deletedAfter ?? []).map((each) => h("span", {}, "is deleted after ", link(each)))),
      !gone && is?.message && h("p", { class: `message tone-${stateOf(is.state).tone}` }, tab === "why" ? is.message : summary?.text || is.message));
  }

  async function refresh() {
    if (reading || stopped) return;
    [reading, stale, began] = [true, false, Date.now()];
    const read = (each) => get(pathOf(namespace, name, each), { signal: abort.signal, tags });
    if (part === "objects" && !view) get(pathOf(namespace, name, "inventory"), { signal: abort.signal }).then((known) => { if (reading && !view && !stopped && known.nodes.length) paint(known, [], true); }).catch(() => {});
    try {
      const [answer, own] = await Promise.all([read(part), part === "history" ? read("summary").catch((error) => error) : unchanged]);
      if (stopped) return;
      gone = failed = false;
      const summary = answer.summary ?? own.summary;
      if (summary) paintHead(summary);
      if (answer !== unchanged) paint(answer.value ?? answer, answer.notes);
      if (own instanceof Error) throw own; // a deleted ManagedResource still has a history
    } catch (error) {
      if (!stopped) fail(error);
    } finally {
      [reading, readAt] = [false, Date.now()];
      paintProgress();
    }
  }

  // A partial value is what is known before the objects were read.
  function paint(value, said, partial = false) {
    view ??= show(panel, { namespace, name, base, parameters, navigate, path: (query) => `${base}?tab=${tab}${query}` });
    view.paint(value, partial);
    panel.setAttribute("aria-busy", partial);
    fill(notes, (said ?? []).map((note) => h("p", { class: "note" }, note)));
  }

  function fail(error) {
    [gone, failed] = [Boolean(error.gone), true];
    view?.fail?.();
    panel.setAttribute("aria-busy", "false");
    if (gone) {
      seen ||= part === "history" && Boolean(view?.seen);
      paintHead();
      fill(notes, h("p", { class: "note bad", role: "alert" }, `ManagedResource ${key} does not exist, or was deleted.`,
        view ? (part === "history" ? " The history below is from before its deletion." : " The data below is from before its deletion.") : "", " ", h("a", { href: back() }, "Back to the list")));
      if (!view && part !== "history") showPast();
      return;
    }
    const title = error.forbidden ? "You may not see this." : "Reading failed.";
    fill(notes, h("div", { class: "note bad", role: "alert" }, h("strong", {}, title), h("pre", {}, error.message)));
  }

  // showPast shows the history of a deleted ManagedResource, as far as it was observed.
  async function showPast() {
    const past = await get(pathOf(namespace, name, "history"), { signal: abort.signal }).catch(() => []);
    if (stopped || past.length === 0) return;
    showHistory(panel, {}).paint(past);
    seen = true;
    paintHead();
  }

  function paintProgress() {
    const seconds = Math.floor((Date.now() - began) / 1000);
    const working = reading && Date.now() - began > 400;
    progress.classList.toggle("working", working);
    say(progress, working ? `Reading${seconds >= 1 ? `, ${seconds} s` : ""}` : readAt && !gone ? `${failed ? "Tried" : "Read"} at ${clockTime(readAt / 1000)}` : "");
  }

  // A ManagedResource that is not well opens with the tab Why, as soon as its state is known.
  let undecided = !parameters.get("tab") && !row;
  function look(changed) {
    const is = store.rows.get(key);
    if (undecided && is) {
      undecided = false;
      if (!stateOf(is.state).well) { navigate(`${base}?tab=why`, true); return; }
    }
    paintHeadFromRow(changed);
    if (changed === null || changed.has(key)) stale = true;
  }
  function paintHeadFromRow(changed) {
    if (changed === null || changed.has(key)) { if (!store.rows.has(key) && store.loaded && !gone) refresh(); else if (!gone) paintHead(); }
  }

  const tick = setInterval(() => {
    if (document.hidden) return;
    paintProgress();
    if (reading || store.cut) return;
    const passed = Date.now() - readAt, is = store.rows.get(key), well = !is || stateOf(is.state).well;
    const due = part === "diff" ? false : passed > (well ? againWell : againUnwell); // diffs are expensive for the cluster: only on demand
    if ((stale && passed > least) || (due && !gone)) refresh();
  }, 250);
  const stop = watch(look);
  panel.setAttribute("aria-busy", "true");
  paintHead();
  refresh();
  return {
    title: key, search: () => view?.search?.(), escape: () => { if (!view?.escape?.()) location.hash = back(); },
    refresh: () => { tags.clear(); refresh(); },
    tab: (number) => tabs[number] && navigate(`${base}?tab=${tabs[number][0]}`, true),
    leave: () => { stopped = true; stop(); clearInterval(tick); abort.abort(); view?.leave?.(); },
  };
}

// link returns a link to another ManagedResource.
function link(key) { return h("a", { href: `#/mr/${key}` }, key); }

// strength describes the required state of a dependency, and what waits for it, unless these are the defaults.
function strength(dependency) {
  return ({ Applied: " to be applied", RolledOut: " to be rolled out" }[dependency.until] ?? "") + (dependency.for === "Creation" ? " before its creation" : "");
}

function back() { return sessionStorage.getItem("list") ?? "#/"; }
