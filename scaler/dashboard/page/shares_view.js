// How each worker spent the last half minute: the difference between its totals now and then.

import { byId, element, reconcile, setAttribute, setText, show } from "./dom.js";
import { short } from "./format.js";

const kWindowMs = 30000;
const kShares = [
  ["computing", "compute_us"],
  ["waiting for shards", "wait_shard_us"],
  ["waiting for pulls", "wait_pull_us"],
  ["waiting for pushes", "wait_push_us"],
];

/** The totals of each process over the window. */
class Totals {
  constructor() {
    this.kept = new Map();
  }

  take(nodes, nowMs) {
    const seen = new Set();
    for (const node of nodes) {
      if (!node.worker) continue;
      const key = `${node.name} ${node.start}`;
      seen.add(key);
      const totals = kShares.map(([, field]) => node.worker.times[field] ?? 0);
      const ring = this.kept.get(key) || [];
      ring.push({ at: nowMs, totals });
      while (ring.length > 2 && nowMs - ring[0].at > kWindowMs) ring.shift();
      this.kept.set(key, ring);
    }
    for (const key of this.kept.keys()) {
      if (!seen.has(key)) this.kept.delete(key);
    }
  }

  /** Shares that add up to 1. All are 0 if nothing was done. */
  of(node) {
    const ring = this.kept.get(`${node.name} ${node.start}`) || [];
    const newest = ring[ring.length - 1];
    // If the process was seen only once, its totals since its start are shown.
    const first = ring.length > 1 ? ring[0].totals : newest.totals.map(() => 0);
    const parts = newest.totals.map((total, index) => Math.max(0, total - first[index]));
    const sum = parts.reduce((a, b) => a + b, 0);
    return parts.map((part) => (sum > 0 ? part / sum : 0));
  }
}

export function addSharesView(store) {
  const totals = new Totals();
  let trained = false;  // some worker was seen training
  byId("shares-legend").append(...kShares.map(([name], index) => element("li", {},
    element("span", { class: `swatch share-${index}`, "aria-hidden": "true" }), element("span", { text: name }))));

  store.view(["nodes", "job"], () => {
    totals.take(store.nodes, store.seenAt);
    const workers = store.nodes.filter((node) => node.worker)
      .sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
    trained ||= workers.length > 0;
    show(byId("shares-empty"), workers.length === 0);
    setText(byId("shares-empty"), store.ended ? "All workers have ended." : trained ? "No worker runs now." : "No worker runs yet.");
    reconcile(byId("shares"), workers, (node) => node.name,
      () => element("li", {}, element("span", { class: "share-name" }),
        element("span", { class: "share-bar", role: "img" }, ...kShares.map((_, index) => element("span", { class: `share-${index}` }))),
        element("span", { class: "share-rate" })),
      (item, node) => {
        const [name, bar, rate] = item.children;
        const shares = totals.of(node);
        setText(name, node.name);
        setText(rate, `${short(node.records_per_second ?? 0)} records/s`);
        shares.forEach((share, index) => {
          bar.children[index].style.width = `${(100 * share).toFixed(1)}%`;
        });
        const said = shares.map((share, index) => `${kShares[index][0]} ${Math.round(100 * share)} %`).join(", ");
        setAttribute(bar, "aria-label", said);
        setAttribute(bar, "title", said);
      });
  });
}
