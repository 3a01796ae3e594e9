// The page: the current view, the banner and the keys.
import { fill, h } from "./dom.js";
import { follow, get, store, watch } from "./data.js";
import { showFleet } from "./fleet.js";
import { showList } from "./list.js";
import { addUser, showLogin } from "./login.js";
import { showOne } from "./one.js";
import { clockTime } from "./words.js";

const main = document.getElementById("main"), banner = document.getElementById("banner"), help = document.getElementById("help"), where = document.getElementById("where");
let view = null, refused = false;

// The token in the address is valid only once. Remove it.
if (new URLSearchParams(location.search).has("token")) history.replaceState(null, "", location.pathname + location.hash);

function navigate(path, replace) {
  if (replace) { history.replaceState(history.state, "", `#${path}`); show(); } else location.hash = path;
}

function show() {
  if (refused) return;
  const [path, query] = (location.hash.slice(1) || "/").split("?");
  const parameters = new URLSearchParams(query ?? "");
  const steps = path.split("/").filter(Boolean).map((step) => { try { return decodeURIComponent(step); } catch { return step; } });
  view?.leave?.();
  fill(main);
  main.className = "";
  if (steps[0] === "mr" && steps.length === 3) view = showOne(main, steps[1], steps[2], parameters, navigate);
  else if (steps[0] === "fleet") view = showFleet(main, parameters, navigate);
  else if (steps.length === 0) view = showList(main, parameters, navigate);
  else { view = { title: "Not found" }; fill(main, h("p", { class: "empty" }, "View not found. ", h("a", { href: "#/" }, "Back to the list"))); }
  document.title = `${view.title} · Trellis`;
  for (const [id, on] of [["to-list", steps.length === 0], ["to-fleet", steps[0] === "fleet"]]) {
    const link = document.getElementById(id);
    if (on) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  if (steps.length === 0) rememberList();
}

function rememberList() { sessionStorage.setItem("list", location.hash || "#/"); }

function paintStatus() {
  const live = document.getElementById("live"), text = document.getElementById("live-text");
  const lost = store.cut ?? store.lost, from = store.cut ? store.cutSince : store.lostSince;
  live.className = `live ${lost ? "lost" : store.loaded ? "on" : "waiting"}`;
  const word = lost ? "Not live" : store.left ? "Logged out" : store.loaded ? "Live" : "Reading";
  if (text.textContent !== word) text.textContent = word;
  banner.hidden = !lost;
  document.body.classList.toggle("stale", Boolean(lost));
  if (!lost) return;
  const lines = lost.split("\n");
  const what = `${store.cut ? "" : "Request to the cluster failed: "}${lines[0]}`;
  const said = `Not live since ${clockTime(from)}. ${what}${store.rows.size ? " The data shown is from that time." : ""}`;
  if (banner.dataset.said !== said) {
    banner.dataset.said = said;
    fill(banner, h("strong", {}, `Not live since ${clockTime(from)}.`), ` ${what}`, lines.slice(1).map((line) => h("span", { class: "advice" }, ` ${line}`)),
      store.rows.size ? h("span", {}, " The data shown is from that time.") : "");
  }
}

const keys = [
  ["/", "Filter"], ["↑ ↓  or  j k", "Move"], ["PageUp PageDown Home End", "Move further"], ["Enter", "Open"], ["Esc", "Back, or clear the filter"],
  ["← →", "Fold and unfold in a tree"], ["1 – 5", "Tree, why, diff, events, history"], ["r", "Read again"], ["g", "Resources"], ["f", "Fleet"], ["?", "This help"],
];

function showHelp() {
  fill(help, h("h2", { id: "help-title" }, "Keys"), h("dl", {}, keys.map(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])),
    h("form", { method: "dialog" }, h("button", { type: "button", class: "chip", autofocus: true, onclick: () => help.close() }, "Close")));
  help.showModal();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open || !view) return;
  const typing = event.target.closest("input, select, textarea");
  if (typing && event.key !== "Escape") return;
  const actions = {
    "/": () => view.search?.(), Escape: () => (typing ? typing.blur() : view.escape?.()), "?": showHelp, r: () => view.refresh?.(),
    g: () => navigate("/"), f: () => navigate("/fleet"),
  };
  for (let number = 1; number <= 5; number++) actions[number] = () => view.tab?.(number - 1);
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
});
document.getElementById("help-button").addEventListener("click", showHelp);
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
window.addEventListener("hashchange", () => { if (!store.left) show(); });
store.out = (refusal) => {
  view?.leave?.();
  view = null;
  main.className = "";
  showLogin(main, refusal);
};
watch(() => {
  if (refused && !store.cut) { refused = false; show(); showWhere(); } // another tab has logged in
  paintStatus(); if (location.hash === "" || location.hash.startsWith("#/?") || location.hash === "#/") rememberList();
});
setInterval(paintStatus, 1000);

async function showWhere() {
  try {
    const facts = await get("about");
    store.scope = facts.scope;
    fill(where, facts.host, h("span", { class: "scope" }, ` · ${facts.scope}`));
    where.title = `${facts.program} ${facts.version}`;
    if (facts.program !== "kubectl mr") store.advice = "";
    addUser(facts);
  } catch (error) {
    if (error.login) return; // store.out handles it
    if (error.status === 401) refuse(); else setTimeout(showWhere, 2000);
  }
}

function refuse() {
  refused = true;
  view?.leave?.();
  view = {};
  fill(main, h("div", { class: "empty" }, h("h1", {}, "This browser is not logged in"), h("p", {}, "Open the last address that kubectl mr ui printed. Each address opens the page once.")));
}

follow();
show();
showWhere();
