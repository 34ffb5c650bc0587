// Shows the policies: thresholds, how often each decided, and whether it is paused.

import { pauseOrResume } from "./actions.js";
import { byId, element, fillFigures, reconcile, setAttribute, setText, show } from "./dom.js";
import { count, field, seconds } from "./format.js";

function makeItem(store, dialog, name) {
  const now = () => store.policies.find((policy) => policy.name === name);
  return element("li", {},
    element("div", { class: "panel-head" },
      element("h3", { text: name }),
      element("span", { class: "badge" }),
      dialog.button("Pause…", `Pause ${name}`, () => (now() ? pauseOrResume(store, now()) : null))),
    element("p", { class: "because" }),
    element("p", { class: "hint" }),
    element("details", {}, element("summary", { text: "Thresholds" }), element("dl", { class: "figures small" })));
}

function stateOf(policy) {
  if (policy.paused) return "paused";
  return policy.dry_run ? "dry run" : "active";
}

function fillItem(store, item, policy) {
  const [head, summary, counts, details] = item.children;
  const [, badge, button] = head.children;
  setText(badge, stateOf(policy));
  setAttribute(badge, "data-state", stateOf(policy));
  setText(button, policy.paused ? "Resume…" : "Pause…");
  setAttribute(button, "aria-label", `${policy.paused ? "Resume" : "Pause"} ${policy.name}`);
  button.disabled = !store.live || pauseOrResume(store, policy) === null;
  setText(summary, policy.summary);
  const last = policy.last_event_id > 0 ? `, the last is #${policy.last_event_id}` : "";
  const held = policy.refused > 0 ? `; ${count(policy.refused)} held back` : "";
  setText(counts, `${count(policy.decisions)} ${policy.decisions === 1 ? "decision" : "decisions"}${last}${held}`);
  const options = Object.entries(policy.options).map(([name, value]) => {
    const { name: words, text } = field(name, value);
    return [words, text];
  });
  const cooldown = policy.cooldown_s > 0 ? [["pause after a decision", seconds(policy.cooldown_s)]] : [];
  fillFigures(details.lastChild, [...options, ...cooldown]);
  show(details, options.length + cooldown.length > 0);
}

export function addPoliciesView(store, dialog) {
  store.view(["policies", "job", "connection"], () => {
    const list = byId("policies-list");
    reconcile(list, store.policies, (policy) => policy.name,
      (policy) => makeItem(store, dialog, policy.name), (item, policy) => fillItem(store, item, policy));
    show(byId("policies-empty"), store.policies.length === 0);
    const all = store.policies.length;
    const cut = list.scrollHeight > list.clientHeight;
    setText(byId("policies-count"), all === 0 ? "" : cut ? `${count(all)} in all: scroll to see the others` : `${count(all)} in all`);
  });
}
