// Shows the state of each shard of an epoch, and lets people retry failed shards.

import { retry } from "./actions.js";
import { byId, element, fillOptions, reconcile, setAttribute, setText, show } from "./dom.js";
import { count, laterText, metric, plural } from "./format.js";
import { onTheme } from "./chart.js";
import { kStates, ShardMap, stateAt } from "./shard_map.js";

function countsOf(map) {
  const counts = Object.fromEntries(kStates.map((state) => [state, 0]));
  for (const { begin, end, state } of map.runs) counts[state] += end - begin;
  return counts;
}

// If a dataset has more epochs, only the newest that have begun and those with failed shards are listed.
const kFewEpochs = 6;
const kNewestEpochs = 3;
const kAll = "all";

/** The epochs to choose from, always with `shown` ({dataset, epoch} or null). If `whole`, each epoch is among them. */
export function epochsOf(datasets, shown, whole) {
  const listed = [];
  let left = 0;
  for (const dataset of datasets) {
    const { epochs, index } = dataset;
    const begun = epochs.filter(({ shards }) => shards.todo < shards.total);
    const newest = begun.slice(-kNewestEpochs);
    for (const one of epochs) {
      const wanted = whole || epochs.length <= kFewEpochs || newest.includes(one) || one.shards.failed > 0 ||
        (shown?.dataset === index && shown.epoch === one.epoch);
      if (!wanted) {
        left += 1;
        continue;
      }
      const of = dataset.epochs_total > 0 ? ` of ${dataset.epochs_total}` : "";
      listed.push([`${index}/${one.epoch}`, `${dataset.name}, epoch ${one.epoch + 1}${of}`]);
    }
  }
  return left > 0 ? [...listed, [kAll, `List ${plural(left, "more epoch")}`]] : listed;
}

/** The results of the shown epoch ({dataset, epoch} or null) so far, besides its shards. */
export function epochText(datasets, shown) {
  const dataset = datasets.find((one) => one.index === shown?.dataset);
  const epoch = dataset?.epochs.find((one) => one.epoch === shown.epoch);
  if (!epoch) return "";
  const parts = Object.entries(epoch.metrics).map(([name, value]) => `${name} ${metric(value)}`);
  if (epoch.records_later > 0 && parts.length > 0) parts.push(laterText(epoch, dataset.overlaps));
  if (epoch.rejected_records > 0) {
    const samples = epoch.reject_samples.length > 0 ? ` (${epoch.reject_samples.join("; ")})` : "";
    parts.push(`${plural(epoch.rejected_records, "record")} rejected${samples}`);
  }
  return parts.join(" · ");
}

/** What workers hold of epochs other than `shown`: "Workers also hold 2 shards of test, epoch 1."; "" if nothing. */
export function heldElsewhere(datasets, shown) {
  const parts = [];
  for (const { name, index, epochs } of datasets) {
    for (const { epoch, shards } of epochs) {
      const here = shown?.dataset === index && shown.epoch === epoch;
      if (!here && shards.leased > 0) parts.push(`${plural(shards.leased, "shard")} of ${name}, epoch ${epoch + 1}`);
    }
  }
  return parts.length > 0 ? `Workers also hold ${parts.join("; ")}.` : "";
}

/**
 * The map to show. The scaler ends with the job, so the page may not get the last map from it. But if every record was
 * committed, all shards of a training dataset are committed, too.
 */
export function finalMap({ map, ended, mapOfEnd, job, datasets }) {
  if (!map || !ended || mapOfEnd || job.progress.records_committed < job.progress.records_expected) return map;
  const trains = datasets.some((one) => one.index === map.dataset && one.mode === "train");
  return trains ? { ...map, runs: [{ begin: 0, end: map.shards, state: "committed" }] } : map;
}

const kOld = "The job has ended since. The scaler ended before it could show the last shards.";

/** Remarks about the map. */
export function mapHint(store) {
  const { datasets, shown, map, ended, live, mapOfEnd } = store;
  if (!ended) return heldElsewhere(datasets, shown);
  return map !== null && !live && !mapOfEnd && finalMap(store) === map ? kOld : "";
}

function fillLegend(legend, counts) {
  reconcile(legend, kStates, (state) => state,
    (state) => element("li", {}, element("span", { class: `swatch shard-${state}`, "aria-hidden": "true" }), element("span")),
    (item, state) => setText(item.lastChild, `${state} ${count(counts[state])}`));
}

class MapView {
  constructor(store) {
    this.store = store;
    this.canvas = byId("shard-map");
    this.box = byId("shard-map-box");
    this.hint = byId("shard-under-pointer");
    this.map = new ShardMap(this.canvas);
    this.drawn = "";
    new ResizeObserver(() => this.draw()).observe(this.box);
    onTheme(() => {
      this.map.theme();
      this.drawn = "";
      this.draw();
    });
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.draw());
  }

  /** Draws only if something has changed, because most answers are the same as the one before. */
  draw() {
    const map = finalMap(this.store);
    show(this.canvas, map !== null && map.shards > 0);
    if (!map || map.shards === 0) {
      setText(this.hint, "There are no shards yet. The sources are being cut into shards.");
      return;
    }
    const { clientWidth: width, clientHeight: height } = this.box;
    const wanted = `${width} ${height} ${map.shards} ${map.runs.map((run) => `${run.end}${run.state}`).join()}`;
    if (wanted !== this.drawn && width > 0) {
      this.drawn = wanted;
      this.map.draw(map, width, height);
    }
    const per = this.map.layout?.per ?? 1;
    setText(this.hint, per === 1 ? "Each cell is one shard. Shards run in this order."
      : `Each cell is ${count(per)} shards. It shows the state that most needs attention.`);
  }

  point(event) {
    const map = finalMap(this.store);
    const shard = map && this.map.shardAt(event.offsetX, event.offsetY);
    if (shard === null || shard >= map.shards) return;
    setText(this.hint, `Shard ${map.dataset}/${map.epoch}/${shard}: ${stateAt(map, shard)}`);
  }
}

function failedItem(store, dialog, id) {
  return element("li", {},
    element("div", { class: "panel-head" },
      element("strong", { text: id }),
      dialog.button("Retry…", `Retry shard ${id}`, () => retry(store, [id]))),
    element("p", { class: "hint" }), element("ul", { class: "reasons" }));
}

function fillFailed(store, item, shard) {
  const [head, where, reasons] = item.children;
  head.lastChild.disabled = !store.live || retry(store, [shard.id]) === null;
  const unit = shard.source ? "offset" : "record";
  const from = shard.first_line > 0 ? `line ${count(shard.first_line)}` : `${unit} ${count(shard.first_record)}`;
  const place = `${shard.source || shard.dataset}, from ${from}`;
  setText(where, `${place}; ${plural(shard.records, "record")}; failed ${plural(shard.failures, "time")}`);
  reconcile(reasons, shard.reasons.map((text, index) => ({ text, index })), ({ index }) => index,
    () => element("li"), (line, { text }) => setText(line, text));
}

export function addShardsView(store, dialog, poller) {
  const select = byId("shards-epoch");
  const all = byId("retry-all");
  const view = new MapView(store);
  all.setAttribute("aria-label", "Retry all failed shards");
  all.addEventListener("click", () => {
    const order = retry(store, undefined);
    if (order) dialog.open(order, all);
  });
  let whole = false;
  const fill = () => {
    fillOptions(select, epochsOf(store.datasets, store.shown, whole));
    if (store.shown) select.value = `${store.shown.dataset}/${store.shown.epoch}`;
  };
  select.addEventListener("change", () => {
    if (select.value === kAll) {
      whole = true;
      fill();
      return;
    }
    const [dataset, epoch] = select.value.split("/").map(Number);
    store.chosen = { dataset, epoch };
    poller.hurry("shards");
  });
  store.view(["map", "datasets", "job", "connection"], () => {
    const map = finalMap(store);
    fill();
    const counts = map ? countsOf(map) : Object.fromEntries(kStates.map((state) => [state, 0]));
    fillLegend(byId("shards-legend"), counts);
    setText(byId("shards-elsewhere"), mapHint(store));
    setText(byId("shards-metrics"), epochText(store.datasets, store.shown));
    view.draw();
    if (map) {
      setAttribute(view.canvas, "aria-label", `${plural(map.shards, "shard")}: ${kStates.map((state) => `${counts[state]} ${state}`).join(", ")}`);
    }
  });
  store.view(["failed", "job", "connection"], () => {
    const { failed } = store;
    reconcile(byId("failed-shards"), failed.shards, (shard) => shard.id,
      (shard) => failedItem(store, dialog, shard.id), (item, shard) => fillFailed(store, item, shard));
    const more = failed.total > failed.shards.length;
    show(byId("failed-empty"), failed.total === 0 || more);
    setText(byId("failed-empty"), more ? `The list has the first ${count(failed.shards.length)} of ${count(failed.total)} failed shards.` : "No shard has failed.");
    setText(all, failed.total > 0 ? `Retry all ${count(failed.total)}…` : "Retry all…");
    all.disabled = !store.live || retry(store, undefined) === null;
  });
}
