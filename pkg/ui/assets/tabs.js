// The tabs Why, Diff, Events and History.
import { fill, h, icon } from "./dom.js";
import { badge, healthOf, moment, since, stateOf } from "./words.js";

const seconds = (text) => (text ? Math.floor(Date.parse(text) / 1000) : 0);
const titled = (object) => `${object.namespace ? `${object.namespace}/` : ""}${object.name}`;

export function showWhy(panel, { namespace, name, base }) {
  return {
    paint(value) {
      fill(panel, h("div", { class: "text-view" }, value.map((finding) => explain(finding, finding.namespace === namespace && finding.name === name, base))));
    },
  };
}

function explain(finding, self, base) {
  const well = stateOf(finding.state).well && !(finding.objects ?? []).length;
  return h("article", { class: "finding" },
    self ? h("h2", { class: "hidden" }, "Why") : h("h2", {}, "It waits for ", h("a", { href: `#/mr/${finding.namespace}/${finding.name}` }, `${finding.namespace}/${finding.name}`), " ", badge(finding.state)),
    well && h("p", { class: "all-well" }, icon("good"), " No problems found."),
    (finding.hints ?? []).map((hint) => h("p", { class: "note" }, hint)),
    (finding.objects ?? []).map((object) => trouble(object, base)),
    finding.more ? h("p", {}, h("a", { href: `#${base}?tab=tree` }, `and ${finding.more} more objects`)) : "",
    h("section", { class: "card" }, h("h3", {}, "Conditions of the ManagedResource"), conditions(finding.conditions ?? [], finding.objects?.length)),
    finding.events?.length ? h("section", { class: "card" }, h("h3", {}, "Events of the ManagedResource"), eventTable(finding.events, true)) : "");
}

function trouble(object, base) {
  const { well, tone } = healthOf(object.health);
  return h("section", { class: `card trouble edge-${well ? "busy" : tone}` },
    h("h3", {}, h("a", { href: `#${base}?tab=tree&object=${encodeURIComponent(`${object.kind}/${object.namespace ?? ""}/${object.name}`)}` },
      h("span", { class: "kind" }, object.kind), " ", titled(object)), " ", well ? badge("Changed", "syncs") : badge(object.health, "healths"),
      object.since && !well ? h("span", { class: "faint" }, " for ", since(seconds(object.since))) : ""),
    object.why && h("p", { class: "text" }, object.why),
    (object.changedBy ?? []).map((taker) => h("p", { class: "text" }, "The field manager ", h("strong", {}, taker.manager), " changed it ", since(seconds(taker.when)), " ago: ",
      h("code", {}, (taker.fields ?? []).join(", ")))),
    !well && object.conditions?.length ? [h("h4", {}, "Conditions"), conditions(object.conditions)] : "",
    object.below?.length ? [h("h4", {}, "Owned objects"), h("table", {}, h("tbody", {}, object.below.map((below) => h("tr", {},
      h("td", {}, h("span", { class: "kind" }, below.kind), " ", below.name), h("td", {}, badge(below.health, "healths")), h("td", { class: "age" }, since(seconds(below.since))), h("td", { class: "grow" }, below.why)))))] : "",
    object.events?.length ? [h("h4", {}, "Events"), eventTable(object.events)] : "");
}

function conditions(list, told) {
  if (!list.length) return h("p", { class: "faint" }, "No conditions yet.");
  return h("table", {}, h("tbody", {}, list.map((each) => {
    const wanted = each.type === "ResourcesProgressing" ? "False" : "True";
    const tone = each.status === wanted ? "plain" : each.status === "False" ? "bad" : "busy";
    return h("tr", {}, h("td", {}, each.type), h("td", {}, h("span", { class: `tone-${tone}` }, each.status)), h("td", { class: "age" }, since(seconds(each.since))),
      h("td", { class: "grow" }, h("strong", {}, each.reason), each.message && !(told && each.type !== "ResourcesApplied" && tone !== "plain") ? `${each.reason ? ": " : ""}${each.message}` : ""));
  })));
}

function eventTable(events, ofOne) {
  return h("table", {}, h("tbody", {}, events.map((event) => h("tr", {},
    h("td", { class: "age" }, since(seconds(event.last))), h("td", {}, h("span", { class: event.type === "Normal" ? "" : "tone-busy" }, event.type === "Normal" ? event.reason : [icon("ill", "busy"), " ", event.reason])),
    !ofOne && h("td", {}, event.object), h("td", { class: "grow" }, event.message, event.count > 1 ? h("span", { class: "faint" }, ` (${event.count} times)`) : "")))));
}

const verbs = {
  create: ["+", "good", "would be created"], change: ["~", "busy", "would be changed"], delete: ["−", "bad", "would be deleted"], replace: ["±", "bad", "would be replaced"],
  release: ["~", "busy", "would be released"], fail: ["!", "bad", "would fail"], wait: ["…", "busy", "would wait"],
};
const maxLines = 5000;

export function showDiff(panel) {
  return {
    paint(value) {
      const changes = (value.changes ?? []).filter((each) => each.verb !== "nothing"), same = (value.changes ?? []).length - changes.length;
      let left = maxLines;
      fill(panel, h("div", { class: "text-view" }, h("h2", { class: "hidden" }, "Differences"),
        value.state === "Suspended" && h("p", { class: "note" }, "It is suspended: these changes will be made when it is resumed."),
        (value.problems ?? []).map((problem) => h("p", { class: "note bad" }, problem)),
        value.blocked && h("p", { class: "note" }, `The changes are waiting: ${value.blocked}`),
        !changes.length && h("p", { class: "all-well" }, icon("good"), ` Applying would change nothing: ${same} object${same === 1 ? " matches" : "s match"} the manifests.`),
        changes.length ? h("p", { class: "faint" }, `− marks the current state, + the state after applying. ${changes.length} of ${changes.length + same} objects differ. The values of Secrets are redacted.`) : "",
        changes.map((change) => {
          const [sign, tone, words] = verbs[change.verb] ?? ["?", "plain", change.verb];
          const lines = (change.diff ?? "").replace(/\n$/, "").split("\n").filter((line, at, all) => all.length > 1 || line);
          const shown = lines.slice(0, Math.max(0, left));
          left -= shown.length;
          return h("section", { class: `card trouble edge-${tone}` },
            h("h3", {}, h("span", { class: `sign tone-${tone}`, "aria-hidden": "true" }, sign), " ", h("span", { class: "kind" }, change.kind), " ", titled(change), h("span", { class: "faint" }, ` ${words}`)),
            (change.error || (change.reason && change.verb !== "create")) && h("p", { class: change.error ? "text tone-bad" : "text faint" }, change.error || change.reason),
            shown.length ? h("pre", { class: "lines", tabindex: 0, role: "region", "aria-label": `Difference of ${change.kind} ${change.name}` }, shown.map((line) => h("span", {
              class: line.startsWith("@ ") ? "at" : line[0] === "+" ? "plus" : line[0] === "-" ? "minus" : "same",
            }, line || " "))) : "",
            shown.length < lines.length && h("p", { class: "faint" }, `${lines.length - shown.length} more lines: kubectl mr diff shows all.`));
        })));
    },
  };
}

export function showEvents(panel) {
  return {
    paint(events) {
      fill(panel, h("div", { class: "text-view" }, events.length ? h("section", { class: "card" }, h("h2", { class: "hidden" }, "Events"), eventTable(events))
        : h("p", { class: "empty" }, "No Events found. The API server keeps them for one hour by default.")));
    },
  };
}

export function showHistory(panel) {
  return {
    seen: false, // whether any change was observed
    paint(changes) {
      this.seen = changes.length > 0;
      fill(panel, h("div", { class: "text-view" },
        h("p", { class: "faint" }, "Changes since the server of this page started, the latest first. They are kept only in memory."),
        changes.length ? h("ol", { class: "changes" }, atOnce(changes).map((together) => h("li", {}, moment(together[0].at), h("div", {}, together.map(storyOf)))))
          : h("p", { class: "empty" }, "No changes yet.")));
    },
  };
}

/** atOnce groups changes of the same second. */
function atOnce(changes) {
  const groups = [];
  for (const change of changes) if (groups.at(-1)?.[0].at === change.at) groups.at(-1).push(change); else groups.push([change]);
  return groups;
}

function storyOf(change) {
  switch (change.what) {
    case "state": return [h("p", {}, badge(change.from), h("span", { class: "arrow", "aria-label": "to" }, " → "), badge(change.to)), change.message && h("p", { class: "text" }, change.message)];
    case "condition": return [h("p", {}, h("strong", {}, change.condition), change.from !== change.to ? [` ${change.from ?? ""} → `, h("b", {}, change.to)] : ` stays ${change.to}`, change.reason ? ` (${change.reason})` : ""), change.message && h("p", { class: "text faint" }, change.message)];
    case "spec": return h("p", {}, `Its spec changed: generation ${change.from} → ${change.to}`, change.manager ? [", by the field manager ", h("strong", {}, change.manager)] : "");
    case "created": return h("p", {}, "It was created.");
    case "deleted": return h("p", {}, "It was deleted.");
    case "objects": return [
      change.appliedCount ? h("p", {}, `Applied ${change.appliedCount} object${change.appliedCount === 1 ? "" : "s"}: `, names(change.applied, change.appliedCount)) : "",
      change.goneCount ? h("p", {}, `${change.goneCount} object${change.goneCount === 1 ? "" : "s"} removed: `, names(change.gone, change.goneCount)) : ""];
  }
  return h("p", {}, change.what);
}

const names = (list, count) => h("span", { class: "faint" }, list.join(", "), count > list.length ? ` and ${count - list.length} more` : "");
