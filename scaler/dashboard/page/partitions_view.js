// Shows the partitions of the weights as a heat map. Each has a cell, coloured by the chosen figure.

import { byId, element, fillOptions, reconcile, setAttribute, setText, show } from "./dom.js";
import { count, figure, plural, seconds } from "./format.js";

const kHottest = 5;

/** A figure per second, from two answers of the scaler. total(partition) is the number that grows. */
function rate(total, unit) {
  return { unit, of: (now, before, passed) => (before && passed > 0 ? Math.max(0, total(now) - total(before)) / passed : 0) };
}

const kFigures = {
  service: { name: "service time", ...rate(({ traffic }) => traffic.service_us / 1e6, "ratio") },
  pulls: { name: "pulls", ...rate(({ traffic }) => traffic.pulls, "/s") },
  pushes: { name: "pushes", ...rate(({ traffic }) => traffic.pushes, "/s") },
  moved: { name: "bytes moved", ...rate(({ traffic }) => traffic.moved_bytes, "bytes/s") },
  rows: { name: "rows", unit: "", of: (now) => now.traffic.rows },
  bytes: { name: "size", unit: "bytes", of: (now) => now.traffic.row_bytes },
  snapshot: { name: "age of the snapshot", unit: "s", of: (now) => now.snapshot_age_ms / 1000 },
};

function valuesOf(store, chosen) {
  const { partitions, at, before } = store.partitions;
  const old = new Map((before?.partitions ?? []).map((partition) => [partition.partition, partition]));
  const passed = before?.at > 0 ? (at - before.at) / 1000 : 0;
  return partitions.map((partition) => ({ partition, value: chosen.of(partition, old.get(partition.partition), passed) }));
}

function describe({ partition, value }, chosen) {
  const owner = partition.owner || "no server";
  const state = partition.state === "serving" ? "" : `, ${partition.state}`;
  return `${partition.partition} of ${owner}${state}: ${chosen.name} ${figure(value, chosen.unit)}`;
}

function snapshotText(partitions) {
  const held = partitions.filter((partition) => partition.snapshot > 0);
  if (held.length === 0) return "No partition has a snapshot yet. If a server dies now, everything since the start is trained again.";
  // A restarted master does not know the age of snapshots from before.
  const known = held.filter((partition) => partition.snapshot_age_ms !== null);
  if (known.length === 0) return "";
  const oldest = Math.max(...known.map((partition) => partition.snapshot_age_ms)) / 1000;
  return `The oldest snapshot is ${seconds(Math.round(oldest))} old. If its server dies now, the work of that time is done again.`;
}

export function addPartitionsView(store) {
  const select = byId("partitions-figure");
  const heat = byId("partitions-heat");
  const hint = byId("partition-under-pointer");
  let shown = [];
  fillOptions(select, Object.entries(kFigures).map(([key, { name }]) => [key, name]));

  function update() {
    const chosen = kFigures[select.value];
    shown = valuesOf(store, chosen);
    const most = shown.reduce((max, { value }) => Math.max(max, value), 0);
    reconcile(heat, shown, ({ partition }) => partition.partition,
      ({ partition }) => element("span", { class: "cell", "data-partition": partition.partition }),
      (cell, { partition, value }) => {
        const level = most > 0 ? Math.round((100 * value) / most) : 0;
        if (cell.level !== level) cell.style.setProperty("--level", `${level}%`);
        cell.level = level;
        setAttribute(cell, "data-state", partition.state);
      });
    setText(byId("heat-high"), figure(most, chosen.unit));
    const hottest = [...shown].sort((a, b) => b.value - a.value).slice(0, kHottest).filter(({ value }) => value > 0);
    reconcile(byId("partitions-hottest"), hottest, ({ partition }) => partition.partition,
      () => element("li"), (item, one) => setText(item, describe(one, chosen)));
    const unowned = shown.filter(({ partition }) => partition.state !== "serving").length;
    setAttribute(heat, "aria-label", `${plural(shown.length, "partition")}, ${count(unowned)} not serving; ${chosen.name}: at most ${figure(most, chosen.unit)}`);
    setText(byId("partitions-snapshots"), shown.length > 0 ? snapshotText(store.partitions.partitions) : "");
    show(byId("partitions-empty"), shown.length === 0);
  }

  heat.addEventListener("pointerover", (event) => {
    const at = event.target.dataset.partition;
    const one = at === undefined ? null : shown.find(({ partition }) => String(partition.partition) === at);
    if (one) setText(hint, `Partition ${describe(one, kFigures[select.value])}`);
  });
  select.addEventListener("change", update);
  store.view(["partitions"], update);
}
