// What the page asks for, and how often.

import { count } from "./format.js";
import { byId, setText, show } from "./dom.js";
import { SampleLog } from "./sample_log.js";

const kPage = 1000;
const kPartitionsMax = 4096;
const kFailedShown = 100;

function note(section) {
  return (message) => {
    const line = byId(`${section}-note`);
    setText(line, message);
    show(line, message !== "");
  };
}

/**
 * The epoch to show if the user has chosen none: the first epoch, of training or predictions, in which shards wait or run. If an
 * epoch only waits for its snapshots, workers are already in the next one. If no shard is left, it is the last epoch.
 */
export function presentEpoch(datasets) {
  let last = null;
  for (const dataset of datasets.filter((one) => one.mode !== "evaluate")) {
    for (const epoch of dataset.epochs) {
      last = { dataset: dataset.index, epoch: epoch.epoch };
      if (epoch.shards.todo + epoch.shards.leased > 0) return last;
    }
  }
  const any = datasets.find((one) => one.epochs.length > 0);
  return last || (any ? { dataset: any.index, epoch: any.epochs[0].epoch } : null);
}

/** True if no shard of the map waits or is being trained. */
function isOver(map) {
  return map.runs.every(({ state }) => state !== "todo" && state !== "leased");
}

/** The epoch after `shown` in the same dataset; null if `shown` is the last one. */
function nextEpoch(datasets, shown) {
  const dataset = datasets.find((one) => one.index === shown.dataset);
  const epoch = dataset?.epochs.find((one) => one.epoch === shown.epoch + 1);
  return epoch ? { dataset: dataset.index, epoch: epoch.epoch } : null;
}

/** The epoch to show and its map; [null, null] if there is none. */
export async function askMap(api, datasets, chosen) {
  const mapOf = ({ dataset, epoch }) => api.get(`/api/v1/datasets/${dataset}/epochs/${epoch}/shards`);
  const shown = chosen || presentEpoch(datasets);
  if (!shown) return [null, null];
  const map = await mapOf(shown);
  // Maps are newer than the list of epochs: if the epoch has ended meanwhile, workers are in the next one.
  const next = !chosen && isOver(map) ? nextEpoch(datasets, shown) : null;
  return next ? [next, await mapOf(next)] : [shown, map];
}

/** If only datasets are shown, the note does not mention shards. */
async function askDatasets(store, api, onError) {
  try {
    store.set("datasets", (await api.get("/api/v1/datasets")).datasets);
    onError("");
  } catch (error) {
    if (error.status !== 0) onError(error.message);
    throw error;
  }
}

async function askShards(store, api) {
  const { ended } = store;
  await askDatasets(store, api, note("topics"));
  const { datasets } = store;
  const [shown, map] = await askMap(api, datasets, store.chosen);
  store.shown = shown;
  store.mapOfEnd = ended;
  store.set("map", map);
  store.set("failed", await api.get(`/api/v1/shards?state=failed&limit=${kFailedShown}`));
}

async function askPartitions(store, api) {
  const all = [];
  let total = 0;
  do {
    const page = await api.get(`/api/v1/partitions?offset=${all.length}&limit=${kPage}`);
    total = page.total;
    if (page.partitions.length === 0) break;
    all.push(...page.partitions);
  } while (all.length < Math.min(total, kPartitionsMax));
  const before = store.partitions;
  store.set("partitions", { total, partitions: all, at: performance.now(), before: { ...before, before: null } });
  if (total > all.length) throw new Error(`This section shows ${count(all.length)} of ${count(total)} partitions.`);
}

async function askSamples(store, api) {
  const log = store.samples?.windowS === store.samplesWindowS ? store.samples : new SampleLog(store.samplesWindowS);
  log.take(await api.get(`/api/v1/samples?after_us=${log.newestUs}&window_s=${log.windowS}`));
  if (log.windowS !== store.samplesWindowS) return;  // another window was chosen meanwhile
  store.set("samples", log);
}

async function askLog(store, api) {
  const log = store.log;
  if (!log || (!log.follow && log.loaded)) return;
  const path = `/api/v1/nodes/${encodeURIComponent(log.node)}/logs`;
  const chunk = await api.get(log.loaded ? `${path}?lines=1000&offset=${log.next}` : `${path}?lines=300`);
  if (store.log !== log) return;  // another node was chosen meanwhile
  log.take(chunk);
  store.changed("log");
}

export function addPolls(store, api, poller) {
  poller.add("shards", 2000, () => askShards(store, api), note("shards"));
  poller.add("samples", 2000, () => askSamples(store, api), note("rates"));
  poller.add("partitions", 3000, () => askPartitions(store, api), note("partitions"));
  poller.add("policies", 3000, async () => {
    store.set("policies", (await api.get("/api/v1/policies")).policies);
  }, note("policies"));
  poller.add("log", 1000, () => askLog(store, api), note("logs"));
}
