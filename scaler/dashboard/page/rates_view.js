// A figure of every node over the last ten minutes.

import { TimeChart } from "./chart.js";
import { byId, fillOptions, setAttribute, setText, show } from "./dom.js";
import { figure, words } from "./format.js";

// More lines than this nobody can tell apart: the lowest are shown, where trouble is.
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

/** What was done, or happened, to the job's processes; the events say the rest. */
function marksOf(events) {
  const colors = { decision: "--busy", action: "--text", exit: "--bad" };
  return events.filter((event) => colors[event.kind] && !event.dry_run)
    .map((event) => ({ x: event.wall_us / 1000, label: `#${event.id}`, color: colors[event.kind] }));
}

export function addRatesView(store) {
  const select = byId("rates-figure");
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
    setAttribute(canvas, "aria-label", `${words(select.value)} over the last ten minutes; now: ${now.join(", ")}`);
    setText(byId("rates-hidden"), series.length > lines.length ? `Shown are the ${lines.length} lowest of ${series.length}. Dashed lines are events.` : "Dashed lines are events.");
  }

  select.addEventListener("change", update);
  store.view(["samples", "events"], update);
}
