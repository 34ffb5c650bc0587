// Shows one event to people: what was done, to whom, why, what changed, and on which evidence.

import { element } from "./dom.js";
import { amount, field, figure, plural, seconds, time, words } from "./format.js";

export const kKinds = [
  ["decision", "Decisions"], ["action", "Orders"], ["exit", "Exits"], ["outcome", "Outcomes"], ["note", "Notes"],
];
const kKindNames = { decision: "decision", action: "order", exit: "exit", outcome: "outcome", note: "note" };
const kActionsThatSayWhom = ["scale", "retry-shards", "stop-job"];
const kVerdicts = { helped: "it helped", "no-change": "no change", worse: "it got worse", unknown: "not known" };

/** "restart worker-1". The target is left out if the action already names it. */
function whatOf(event) {
  const target = kActionsThatSayWhom.includes(event.action) ? "" : event.target;
  return [words(event.action), target].filter((part) => part).join(" ") || event.kind;
}

function changes(event) {
  const names = [...new Set([...Object.keys(event.before), ...Object.keys(event.after)])];
  if (names.length === 0) return null;
  const text = (from, name) => (from[name] === undefined ? "–" : amount(name, from[name]));
  return element("ul", { class: "changes" }, ...names.map((name) => element("li", {},
    element("span", { text: `${field(name, 0).name}: ` }),
    element("span", { text: text(event.before, name) }),
    element("span", { class: "arrow", text: " → ", "aria-label": " becomes " }),
    element("strong", { text: text(event.after, name) }))));
}

function evidence(event) {
  if (event.evidence.length === 0) return null;
  const rows = event.evidence.map((piece) => element("tr", {},
    element("th", { scope: "row", text: words(piece.name) }),
    element("td", { text: figure(piece.value, piece.unit) }),
    element("td", { text: piece.window_s > 0 ? `over ${seconds(piece.window_s)}` : "at that moment" })));
  return element("details", { class: "evidence" },
    element("summary", { text: "Based on " + plural(rows.length, "figure") }),
    element("table", {}, element("tbody", {}, ...rows)));
}

/** `links` are nodes at the end of the card. They lead to the event's cause and to its effects. */
export function eventCard(event, links = []) {
  const head = element("p", { class: "event-head" },
    element("span", { class: "event-id", text: `#${event.id}` }),
    element("time", { text: time(event.wall_us), datetime: new Date(event.wall_us / 1000).toISOString() }),
    element("span", { class: `kind kind-${event.kind}`, text: kKindNames[event.kind] || event.kind }),
    event.verdict ? element("span", { class: `verdict verdict-${event.verdict}`, text: kVerdicts[event.verdict] || event.verdict }) : null,
    event.dry_run ? element("span", { class: "verdict", text: "dry run, not carried out" }) : null);
  const what = element("p", { class: "event-what" },
    element("strong", { text: whatOf(event) }),
    event.policy ? ` by ${event.policy}` : "");
  return element("div", { class: "event" },
    head, what,
    event.because ? element("p", { class: "because", text: event.because }) : null,
    changes(event), evidence(event),
    links.length > 0 ? element("p", { class: "event-links" }, ...links) : null);
}
