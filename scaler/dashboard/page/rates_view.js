// Shows a figure of every node over time.

import { TimeChart } from "./chart.js";
import { byId, fillOptions, setAttribute, setText, show } from "./dom.js";
import { figure, words } from "./format.js";

// More lines than this cannot be told apart. The lowest are shown, because they show trouble.
const kLinesMax = 12;
const kFirst = "records_per_second";

function last(points) {
  for (let i = points.length - 1; i >= 0; --i) {
    if (points[i].y !== null) return points[i].y;
  }
  return 0;
}

function chooseLines(series) {
  const byName = (a, b) => a.node.localeCompare(b.node, "en", { numeric: true });
  if (series.length <= kLinesMax) return [...series].sort(byName);
  return [...series].sort((a, b) => last(a.points) - last(b.points)).slice(0, kLinesMax).sort(byName);
}

/**
 * The events of the chart: what happened to the job's processes, what was done about it, and ends of epochs. Ends of epochs
 * are `minor`: they are left out if there is no room for their label.
 */
export function marksOf(events) {
  const colors = { decision: "--busy", action: "--text", exit: "--bad" };
  const marks = [];
  for (const event of events) {
    const x = event.wall_us / 1000;
    const epoch = event.kind === "note" ? event.evidence.find(({ name }) => name === "epoch") : undefined;
    const color = event.kind === "note" && event.target === "master" ? "--warn" : colors[event.kind];
    if (epoch) marks.push({ x, label: `epoch ${epoch.value} of ${event.target}`, color: "--muted", minor: true });
    else if (color && !event.dry_run) marks.push({ x, label: `#${event.id}`, color });
  }
  return marks;
}

const kWindows = [[300, "5 minutes"], [600, "10 minutes"], [1800, "30 minutes"], [7200, "2 hours"], [21600, "6 hours"]];
const kMarksText = "A dashed line is an event, by its number.";

export function addRatesView(store, poller) {
  const select = byId("rates-figure");
  const range = byId("rates-window");
  fillOptions(range, kWindows);
  range.value = String(store.samplesWindowS);
  const canvas = byId("rates-chart");
  const empty = byId("rates-empty");
  let unit = "";
  let chart = null;

  function update() {
    const log = store.samples;
    const names = log ? log.names() : [];
    const had = select.value;
    fillOptions(select, names.map(([name]) => [name, words(name)]));
    if (had === "" && names.length > 0) {
      select.value = names.some(([name]) => name === kFirst) ? kFirst : names[0][0];
    }
    const series = log ? log.of(select.value) : [];
    show(empty, series.length === 0);
    if (series.length === 0) return;
    unit = series[0].unit;
    chart ||= new TimeChart(canvas, (value) => figure(value, unit));
    const lines = chooseLines(series);
    chart.set(lines.map(({ node, points }) => ({ label: node || "job", points })), marksOf(store.events));
    const now = lines.map(({ node, points }) => `${node || "job"} ${figure(last(points), unit)}`);
    setAttribute(canvas, "aria-label", `${words(select.value)} over the last ${range.selectedOptions[0].text}; now: ${now.join(", ")}`);
    setText(byId("rates-hidden"), series.length > lines.length ? `The chart shows the ${lines.length} lowest of ${series.length} lines. ${kMarksText}` : kMarksText);
  }

  select.addEventListener("change", update);
  range.addEventListener("change", () => {
    store.samplesWindowS = Number(range.value);
    poller.hurry("samples");
  });
  store.view(["samples", "events"], update);
}
