// A synchronous group: its step, why the next one waits, and what each process does.

import { byId, element, fillFigures, reconcile, setText, show } from "./dom.js";
import { count, plural, seconds } from "./format.js";

function known(value, text) {
  return value === null || value === undefined ? "–" : text(value);
}

/** The phase, and whether the others wait for it. */
export function phaseOf({ phase, awaited }) {
  return awaited ? `${phase}, awaited` : phase;
}

/** The texts of the columns after the worker's name. `whole` is the number of minibatches of the present step. */
const kColumns = [
  ["Standing", (process) => (process.suspected ? `${process.standing}, suspected` : process.standing)],
  ["Phase", phaseOf],
  ["Share", (process, whole) => (process.rank === null || whole === 0 ? "–" : `${count(process.share_minibatches)} of ${count(whole)}`)],
  ["A minibatch", (process) => known(process.minibatch_us, (us) => seconds(us / 1e6))],
  ["Step", (process) => known(process.step, count)],
  ["Rank", (process) => known(process.rank, count)],
];

export function figuresOf(group) {
  return [
    ["Step", count(group.step)],
    ["Members", `${count(group.members)} (of ${count(group.members_min)} to ${count(group.members_max)})`],
    ["Records of a step", count(group.global_batch)],
    ["Attempt", count(group.attempt)],
    ["Checkpoint", group.checkpoint_step > 0 ? `of step ${count(group.checkpoint_step)}` : "none yet"],
  ];
}

/** Why the next step waits, and why processes are not members. Each reason comes once. */
export function waitsOf(group) {
  const reasons = new Map();
  for (const { worker, waits } of group.processes) {
    if (waits !== "") reasons.set(waits, [...(reasons.get(waits) ?? []), worker]);
  }
  const lines = [...reasons].map(([reason, [first, ...more]]) =>
    `${more.length === 0 ? first : `${first} and ${plural(more.length, "other")}`}: ${reason}`);
  return group.waits === "" ? lines : [`The next step waits: ${group.waits}`, ...lines];
}

function makeRow({ worker }) {
  return element("tr", {}, element("th", { scope: "row", "data-label": "Worker", text: worker }),
    ...kColumns.map(([head]) => element("td", { "data-label": head })));
}

export function addGroupView(store) {
  byId("group-head").append(...["Worker", ...kColumns.map(([head]) => head)].map((text) => element("th", { scope: "col", text })));

  store.view(["job"], () => {
    const group = store.job?.group;
    show(byId("group"), Boolean(group));
    show(byId("group-link"), Boolean(group));
    if (!group) return;
    fillFigures(byId("group-figures"), figuresOf(group));
    const whole = group.processes.reduce((sum, process) => sum + process.share_minibatches, 0);
    reconcile(byId("group-rows"), group.processes, ({ worker }) => worker, makeRow, (row, process) => {
      kColumns.forEach(([, text], index) => setText(row.children[index + 1], text(process, whole)));
    });
    show(byId("group-box"), group.processes.length > 0);
    reconcile(byId("group-waits"), store.ended ? [] : waitsOf(group), (line) => line, () => element("li", { class: "note" }), (item, line) => setText(item, line));
  });
}
