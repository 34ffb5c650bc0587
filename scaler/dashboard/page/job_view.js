// The head of the page: state, progress, remaining time, and whether the page is up to date.

import { cancelJob, drainJob, scale } from "./actions.js";
import { byId, fillFigures, setAttribute, setText, show } from "./dom.js";
import { count, plural, roughly, seconds, short, time, words } from "./format.js";
import { progressOf } from "./progress.js";
import { RemainingTime } from "./remaining_time.js";
import { hasEnded } from "./store.js";

const kTickMs = 500;
// After this time, a figure on the page counts as old.
const kStaleMs = 2000;

function ago(since) {
  return seconds(Math.max(0, Math.round((Date.now() - since) / 1000)));
}

function connectionText(store) {
  const { state, detail } = store.connection;
  if (store.ended) return state === "lost" ? "Ended; the scaler has ended, too" : "Ended";
  if (state === "live") return "Live";
  if (state === "connecting") return "Connecting…";
  if (state === "denied") return "No access";
  if (state === "paused") return "Paused while this tab is hidden";
  return `Connection lost. ${detail}`;
}

function bannerText(store) {
  const job = store.job;
  if (!job) return "";
  if (store.ended) {
    const why = job.reason ? `: ${job.reason}` : "";
    return `The job has ended: ${job.state}${why}.`.replace("..", ".");
  }
  if (store.live && !job.master_reachable) {
    const seen = job.seen_wall_us > 0 ? ` The progress shown is that of ${time(job.seen_wall_us)}.` : "";
    return `The job's master does not answer. If it has ended, muster run starts it again; workers go on with the shards that they hold.${seen}`;
  }
  return "";
}

/**
 * Why a running job makes no progress, or would lose work; "" if nothing is known. It says for how long. So it is not a
 * part of the banner, which screen readers read again whenever it changes.
 */
export function troubleText(job) {
  return job && !hasEnded(job) && job.reason ? `This needs attention: ${job.reason}.` : "";
}

function updateConnection(store) {
  const line = byId("connection");
  const old = store.seenAt > 0 && Date.now() - store.seenAt > kStaleMs;
  setText(line, connectionText(store));
  setAttribute(line, "data-state", store.ended ? "ended" : store.connection.state);
  const stale = !store.ended && (store.connection.state === "lost" || old);
  // This is not a part of the line above, which screen readers read again whenever it changes.
  setText(byId("age"), stale && store.seenAt > 0 ? `This page shows the state of ${ago(store.seenAt)} ago.` : "");
  document.body.classList.toggle("stale", stale);
}

/** How long the job still needs, for people. `left`: seconds; null: not known. */
export function remainingText(left, endless, ended) {
  if (ended) return "–";
  if (endless) return "no end is known";
  return left === null ? "not known yet" : `about ${roughly(left)}`;
}

function figures(job, store, said, left) {
  const { progress } = job;
  const workers = store.nodes.filter((node) => node.role === "worker" && node.state === "running").length;
  return [
    ...said.figures,
    ["Rate", store.ended ? "–" : `${short(progress.records_per_second ?? 0)} records/s`],
    ["Remaining", remainingText(left, said.done === null, store.ended)],
    ["Running for", seconds(Math.round(job.running_ms / 1000))],
    ["Workers", plural(workers, "worker")],
  ];
}

/**
 * Why records that are done are not committed yet, and when they will be; "" if all are committed.
 * @param partitions {at: ms, partitions: [{snapshot_age_ms}]} as of `now`, by the same clock
 */
export function commitText(progress, intervalS, { at, partitions }, now) {
  if (progress.records_done <= progress.records_committed) return "";
  const why = "A record is committed when every partition has a snapshot that holds it.";
  if (!(intervalS > 0)) return why;
  const ages = partitions.map((partition) => partition.snapshot_age_ms);
  if (ages.length === 0 || ages.some((age) => age === null || age === undefined)) {
    return `${why} Servers take snapshots every ${seconds(intervalS)}.`;
  }
  const left = Math.ceil(intervalS - (Math.max(...ages) + now - at) / 1000);
  return left > 0 ? `${why} The next snapshots begin in about ${seconds(left)}.` : `${why} The next snapshots are being taken.`;
}

function updateJob(store, remaining) {
  const { job } = store;
  if (!job) return;
  const { progress } = job;
  setText(byId("job-name"), job.name);
  const state = byId("job-state");
  show(state, true);
  setText(state, job.state);
  setAttribute(state, "data-state", job.state);
  const said = progressOf(progress, store.datasets);
  document.title = `${said.title} ${job.name} – Muster`;
  show(byId("progress-bar"), said.done !== null);
  if (said.done !== null) {
    byId("progress-done").style.width = `${said.done}%`;
    byId("progress-committed").style.width = `${said.committed}%`;
    setAttribute(byId("progress-bar"), "aria-valuenow", String(said.committed).slice(0, 5));
  }
  fillFigures(byId("job-figures"), figures(job, store, said, remaining.take(progress.remaining_seconds ?? null, store.seenAt)));
  setText(byId("commit-hint"), store.ended ? "" : commitText(progress, job.snapshot_interval_s, store.partitions, performance.now()));
  fillFigures(byId("job-counters"), Object.entries(job.counters).map(([name, value]) => [words(name), count(value)]));
}

export function addJobView(store, dialog) {
  const orders = [
    [dialog.button("Scale…", "Change the number of workers", () => scale(store)), scale],
    [dialog.button("Drain…", "Drain the job", () => drainJob(store)), drainJob],
    [dialog.button("Cancel…", "Cancel the job", () => cancelJob(store)), cancelJob],
  ];
  const remaining = new RemainingTime();
  byId("job-actions").append(...orders.map(([button]) => button));
  store.view(["job", "nodes", "datasets", "connection"], () => {
    updateJob(store, remaining);
    updateConnection(store);
    const banner = bannerText(store);
    setText(byId("banner"), banner);
    show(byId("banner"), banner !== "");
    setText(byId("trouble"), troubleText(store.job));
    show(byId("trouble"), byId("trouble").textContent !== "");
    byId("banner").dataset.state = store.job?.state ?? "";
    for (const [button, spec] of orders) button.disabled = !store.live || spec(store) === null;
  });
  setInterval(() => updateConnection(store), kTickMs);
}
