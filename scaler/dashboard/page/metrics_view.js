// A chart of every metric of the trainer by epoch, and the master's own words about their course.

import { EpochChart } from "./chart.js";
import { byId, element, reconcile, setAttribute, setText, show } from "./dom.js";
import { laterText, metric } from "./format.js";

// More charts than this make the page slow, so further metrics are only named.
const kChartsMax = 12;

/** The lines of each metric, one per dataset: [[name, [{label, number, best, points: [{x, y, note}]}]]]. */
export function linesOf(datasets, trends) {
  const lines = new Map();
  datasets.forEach((dataset, number) => {
    for (const one of dataset.epochs) {
      const { epoch, records_committed: committed, metrics } = one;
      const later = one.records_later > 0 ? { note: laterText(one, dataset.overlaps) } : {};
      for (const [name, value] of committed > 0 ? Object.entries(metrics) : []) {
        if (!lines.has(name)) lines.set(name, new Map());
        const line = lines.get(name).get(dataset.name) || { label: dataset.name, number, best: null, points: [] };
        line.points.push({ x: epoch + 1, y: value, ...later });
        lines.get(name).set(dataset.name, line);
      }
    }
  });
  for (const { dataset, metric: name, best, best_epoch: epoch } of trends) {
    const line = lines.get(name)?.get(dataset);
    if (line && best !== null) line.best = epoch + 1;
  }
  return [...lines].sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true }))
    .map(([name, of]) => [name, [...of.values()]]);
}

/** "test 0.711 in epoch 80, before 0.712, best 0.816 in epoch 3" */
export function trendText(trend) {
  const parts = [`${trend.dataset} ${metric(trend.latest)} in epoch ${trend.epoch + 1}${trend.epoch_over ? "" : " so far"}`];
  if (trend.previous !== null) parts.push(`before ${metric(trend.previous)}`);
  if (trend.best !== null && trend.best_epoch !== trend.epoch) {
    parts.push(`best ${metric(trend.best)} in epoch ${trend.best_epoch + 1}`);
  } else if (trend.best !== null && trend.previous !== null) {
    parts.push("best so far");
  }
  return parts.join(", ");
}

function makeChart([name]) {
  const canvas = element("canvas", { role: "img" });
  return element("li", {},
    element("h3", { text: name }),
    element("div", { class: "chart" }, canvas),
    element("ul", { class: "hint" }));
}

function fillChart(item, [name, lines], trends, charts) {
  const [, box, texts] = item.children;
  const canvas = box.firstChild;
  const seen = JSON.stringify(lines);
  let known = charts.get(canvas);
  // A chart is drawn after it is in the page, because only then it has a width. Most answers change nothing.
  if (known?.seen !== seen) {
    known ||= { chart: null, seen: "" };
    known.seen = seen;
    charts.set(canvas, known);
    requestAnimationFrame(() => {
      known.chart ||= new EpochChart(canvas, metric);
      known.chart.set(lines);
    });
  }
  const words = trends.filter((trend) => trend.metric === name).map(trendText);
  setAttribute(canvas, "aria-label", `${name} by epoch: ${words.join("; ")}`);
  reconcile(texts, words.map((text, index) => ({ text, index })), ({ index }) => index,
    () => element("li"), (line, { text }) => setText(line, text));
}

export function addMetricsView(store) {
  const charts = new WeakMap();
  store.view(["datasets", "job"], () => {
    const trends = store.job?.metric_trends ?? [];
    const all = linesOf(store.datasets, trends);
    for (const part of ["metrics", "metrics-link"]) show(byId(part), all.length > 0);
    const remarks = trends.map((trend) => trend.remark).filter((text) => text !== "");
    reconcile(byId("metrics-remarks"), remarks, (text) => text, () => element("li", { class: "note" }),
      (line, text) => setText(line, text));
    reconcile(byId("metrics-charts"), all.slice(0, kChartsMax), ([name]) => name, makeChart,
      (item, lines) => fillChart(item, lines, trends, charts));
    const left = all.slice(kChartsMax).map(([name]) => name);
    show(byId("metrics-more"), left.length > 0);
    setText(byId("metrics-more"), `This section has no chart of these metrics: ${left.join(", ")}.`);
  });
}
