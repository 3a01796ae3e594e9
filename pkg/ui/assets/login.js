// Login and logout on a page that is served to many viewers. Each viewer has a token, which the browser keeps in a
// cookie that scripts
// cannot read.
import { fill, h } from "./dom.js";
import { store, watch } from "./data.js";

async function post(path, body) {
  const response = await fetch(`api/${path}`, {
    method: "POST", cache: "no-store", credentials: "same-origin", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body ?? {}),
  });
  if (response.ok) return;
  const answer = await response.json().catch(() => ({}));
  throw new Error(answer.error ?? `The server of this page responded with status ${response.status}.`);
}

function field(id, label, hint) {
  const input = h("input", { id, type: "password", autocomplete: "off", spellcheck: "false", autocapitalize: "off", "aria-describedby": `${id}-hint` });
  return [input, h("div", { class: "field" }, h("label", { for: id }, label), input, h("p", { id: `${id}-hint`, class: "faint" }, hint))];
}

/** showLogin asks for a token. The refusal contains the reason, and whether the objects are in another cluster. */
export function showLogin(main, refusal) {
  const [token, tokenField] = field("token", "Token", "For the cluster with the ManagedResources, for example from kubectl create token.");
  const [target, targetField] = field("target-token", "Token for the cluster with the objects", "Optional: without it, the page does not show the state of objects.");
  const problem = h("p", { class: "problem", role: "alert" }), submit = h("button", { type: "submit", class: "chip" }, "Log in");
  const form = h("form", { class: "login", "aria-labelledby": "login-title",
    onsubmit: async (event) => {
      event.preventDefault();
      submit.disabled = true;
      fill(problem);
      try {
        await post("login", { token: token.value, targetToken: target.value });
        location.reload();
      } catch (error) {
        fill(problem, error.message);
        submit.disabled = false;
        token.focus();
      }
      token.value = target.value = "";
    },
  }, h("h1", { id: "login-title" }, "Log in"), h("p", {}, "You see what this token may read. The browser keeps it until you log out or close the browser."), problem,
  tokenField, refusal.login === "tokens" ? targetField : "", submit);
  fill(main, form);
  document.title = "Log in · Trellis";
  if (refusal.again) fill(problem, refusal.message);
  token.focus();
}

/** addUser shows the name of the viewer, and a button to log out. */
export function addUser(facts) {
  const before = document.getElementById("live");
  if (facts.user) before.before(h("span", { class: "user", title: facts.user }, facts.user.replace(/^system:serviceaccount:/, "")));
  if (!facts.canLeave) return;
  before.before(h("button", { type: "button", class: "plain", id: "log-out", onclick: async () => {
    await post("logout").catch(() => {});
    location.reload();
  } }, "Log out"));
}

// The notice above every view describes what is not shown.
const notice = h("p", { class: "notice", role: "status", hidden: true });
document.getElementById("main").before(notice);
watch(() => {
  const text = store.notice ?? "";
  if (notice.textContent !== text) fill(notice, text);
  notice.hidden = text === "";
});
