// One row per process: state, usage and limits, starts, last exit, and the orders that are possible.

import { kNodeOrders, takesOrders } from "./actions.js";
import { byId, element, reconcile, setAttribute, setText, show } from "./dom.js";
import { bytes, count, digitsOf, percent, plural, seconds, short } from "./format.js";

const kHeartbeatLateMs = 3000;

function cell(label, ...children) {
  return element("td", { "data-label": label }, ...children);
}

function meter() {
  return [
    element("span", { class: "amount" }),
    element("span", { class: "meter", "aria-hidden": "true" }, element("span", { class: "meter-peak" }), element("span", { class: "meter-used" })),
    element("span", { class: "sub" }),
  ];
}

function fillMeter(td, { text, sub, used, peak, limit }) {
  const [amount, bar, below] = td.children;
  setText(amount, text);
  setText(below, sub);
  show(bar, limit > 0);
  if (!(limit > 0)) return;
  bar.lastChild.style.width = `${Math.min(100, (100 * used) / limit)}%`;
  bar.firstChild.style.width = `${Math.min(100, (100 * peak) / limit)}%`;
  setAttribute(bar, "data-level", used > 0.95 * limit ? "full" : used > 0.8 * limit ? "high" : "fine");
}

function memory(node) {
  const limit = node.limits.memory_bytes;
  const of = limit > 0 ? ` of ${bytes(limit)}` : ", no limit";
  if (!node.usage) return { text: limit > 0 ? `limit ${bytes(limit)}` : "not measured", sub: "", used: 0, peak: 0, limit: 0 };
  const { memory_bytes: used, memory_peak_bytes: peak } = node.usage;
  return { text: bytes(used) + of, sub: peak > 0 ? `peak ${bytes(peak)}` : "", used, peak, limit };
}

function cpuOf(node) {
  const limit = node.limits.cpus;
  const of = limit > 0 ? ` of ${digitsOf(limit)}` : ", no limit";
  if (!node.usage) return { text: limit > 0 ? `limit ${digitsOf(limit)}` : "not measured", sub: "", used: 0, peak: 0, limit: 0 };
  const used = node.usage.cpus ?? 0;  // null: not known yet
  const throttled = node.usage.throttled_ratio ?? 0;
  const sub = throttled >= 0.005 ? `throttled ${Math.round(100 * throttled)} %` : "";
  return { text: digitsOf(used) + of, sub, used, peak: 0, limit };
}

function work(node) {
  if (node.worker) {
    return [`${short(node.records_per_second ?? 0)} records/s`, `${plural(node.worker.shards_held, "shard")} held, ${short(node.worker.records_committed)} committed`];
  }
  if (node.server) {
    const { partitions_serving: serving, partitions, counters: { row_bytes: size, rows } } = node.server;
    return [`${count(serving)} of ${plural(partitions, "partition")} serving`, `${short(rows)} rows, ${bytes(size)}`];
  }
  return ["", ""];
}

const kUp = ["starting", "running", "lost", "draining"];

/** What a node does, in a word. The last exits are not reported, so nodes that ran at the job's end are shown as ending. */
export function stateText(node, { ended, live }) {
  if (ended && kUp.includes(node.state)) return live ? "ending" : "ended";
  return node.drain === "none" ? node.state : node.drain;
}

// A worker is slow if its rate is below this share of its peers' rate in this many statuses in a row, one per second.
const kSlowRatio = 0.25;
const kSlowTimes = 5;

function isBusy(node) {
  return node.worker && node.state === "running" && node.worker.shards_held > 0 && typeof node.records_per_second === "number";
}

/** The rate of a worker as a share of the median of other workers with shards; null if they cannot be compared. */
export function paceOf(node, nodes) {
  const rates = nodes.filter((other) => other.name !== node.name && isBusy(other)).map((other) => other.records_per_second).sort((a, b) => a - b);
  const median = rates[Math.floor(rates.length / 2)];
  return isBusy(node) && median > 0 ? node.records_per_second / median : null;
}

/** Finds workers that are slow compared with their peers. */
export class SlowWorkers {
  constructor() {
    this.times = new Map();
  }

  /** Takes the nodes of a status: [[name, pace]] of those that have been slow for some time. */
  take(nodes) {
    const paces = nodes.map((node) => [node.name, paceOf(node, nodes)]).filter(([, pace]) => pace !== null && pace < kSlowRatio);
    this.times = new Map(paces.map(([name]) => [name, (this.times.get(name) ?? 0) + 1]));
    return paces.filter(([name]) => this.times.get(name) >= kSlowTimes);
  }
}

function heartbeat(node) {
  if (node.state === "waiting") return `${node.wait}: ${node.wait_reason}`;
  if (node.state !== "running" || node.heartbeat_age_ms < kHeartbeatLateMs) return node.pid > 0 ? `process ${node.pid}` : "";
  return `silent for ${seconds(Math.round(node.heartbeat_age_ms / 1000))}`;
}

function two() {
  return [element("span"), element("span", { class: "sub" })];
}

function fillTwo(td, [first, second]) {
  setText(td.children[0], first);
  setText(td.children[1], second);
  td.classList.toggle("blank", first === "");
}

function makeRow(store, dialog, name) {
  const now = () => store.nodes.find((node) => node.name === name);
  const orders = kNodeOrders.map(([text, spec]) => {
    const button = dialog.button(`${text}…`, `${text} ${name}`, () => (now() ? spec(store, now()) : null));
    button.spec = spec;
    return button;
  });
  const logs = element("a", { href: "#logs", class: "button", text: "Logs", "aria-label": `Logs of ${name}`, click: () => store.chooseLog(name) });
  return element("tr", {},
    element("th", { scope: "row" }, ...two()),
    cell("State", element("span", { class: "badge" }), element("span", { class: "sub" })),
    cell("Memory", ...meter()),
    cell("CPU", ...meter()),
    cell("Work", ...two()),
    cell("Starts", ...two()),
    cell("Last exit", element("span")),
    element("td", { class: "orders" }, ...orders, logs));
}

function fillRow(store, row, node, pace) {
  const [name, state, mem, cpu, works, starts, exit, orders] = row.children;
  fillTwo(name, [node.name, node.role]);
  const word = stateText(node, store);
  setText(state.children[0], word);
  setAttribute(state.children[0], "data-state", pace === undefined ? word : "slow");
  setText(state.children[1], pace === undefined ? heartbeat(node) : `slow: ${percent(pace, 1)} of its peers' rate`);
  fillMeter(mem, memory(node));
  fillMeter(cpu, cpuOf(node));
  fillTwo(works, work(node));
  fillTwo(starts, [count(node.start), node.restarts > 0 ? plural(node.restarts, "restart") : ""]);
  setText(exit.firstChild, node.last_exit || "–");
  for (const button of orders.children) {
    if (!button.spec) continue;
    button.disabled = !store.live || button.spec(store, node) === null;
    show(button, takesOrders(node));
  }
}

const kRoles = ["master", "scaler", "ps", "worker"];

export function addNodesView(store, dialog) {
  const rows = byId("nodes-rows");
  const watch = new SlowWorkers();
  let seen = null;
  let slow = new Map();
  store.view(["nodes", "job", "connection"], () => {
    if (seen !== store.nodes) slow = new Map(watch.take(store.nodes));
    seen = store.nodes;
    const nodes = [...store.nodes].sort((a, b) => kRoles.indexOf(a.role) - kRoles.indexOf(b.role)
      || a.name.localeCompare(b.name, "en", { numeric: true }));
    reconcile(rows, nodes, (node) => node.name, (node) => makeRow(store, dialog, node.name),
      (row, node) => fillRow(store, row, node, store.ended ? undefined : slow.get(node.name)));
    setText(byId("nodes-count"), nodes.length > 0 ? plural(nodes.length, "process").replace("processs", "processes") : "");
    show(byId("nodes-empty"), nodes.length === 0);
  });
}
