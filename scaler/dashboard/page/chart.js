// Draws lines over time with Chart.js, in the colours of the page.

const kLines = 8;
const themeListeners = [];

/** Calls `update` when the page becomes dark or light. */
export function onTheme(update) {
  themeListeners.push(update);
}

export function followTheme() {
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    themeListeners.forEach((update) => update());
  });
}

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function clock(milliseconds) {
  return new Date(milliseconds).toLocaleTimeString([], { hour12: false });
}

function drawMark({ ctx: context, chartArea: area }, at, mark, labelY) {
  context.strokeStyle = color(mark.color);
  context.fillStyle = context.strokeStyle;
  context.beginPath();
  context.moveTo(at, area.top);
  context.lineTo(at, area.bottom);
  context.stroke();
  if (labelY !== null) context.fillText(mark.label, at + 3, labelY);
}

/**
 * Draws chart.marks, moments at which something happened: [{x: ms, label, color, minor}]. A label is left out if it would
 * cover another one. The label of a minor mark is at the foot of the chart, and the mark is left out together with it.
 */
const marksPlugin = {
  id: "marks",
  afterDatasetsDraw(chart) {
    const { ctx: context, chartArea: area, scales: { x } } = chart;
    context.save();
    context.font = "11px sans-serif";
    context.setLineDash([3, 3]);
    const free = { head: -Infinity, foot: -Infinity };
    for (const mark of chart.marks || []) {
      if (mark.x < x.min || mark.x > x.max) continue;
      const at = Math.round(x.getPixelForValue(mark.x));
      const width = context.measureText(mark.label).width;
      const row = mark.minor ? "foot" : "head";
      const room = at >= free[row] && (!mark.minor || at + 3 + width <= area.right);
      if (mark.minor && !room) continue;
      drawMark(chart, at, mark, !room ? null : mark.minor ? area.bottom - 4 : area.top + 10);
      if (room) free[row] = at + 6 + width;
    }
    context.restore();
  },
};

/** Lines in the colours of the page. Subclasses say what the horizontal axis is: TimeChart, EpochChart. */
class LineChart {
  /** @param text (value) => how the figure of the vertical axis is written
   *  @param over {plugins, point, x, y, at}: what the axes and the points are; at(x): the heading of a tooltip */
  constructor(canvas, text, over) {
    this.text = text;
    this.chart = new window.Chart(canvas, {
      type: "line",
      data: { datasets: [] },
      plugins: over.plugins,
      options: {
        onResize: (_, { width }) => this.fit(width),
        animation: false, parsing: false, normalized: true, responsive: true, maintainAspectRatio: false,
        interaction: { mode: "nearest", axis: "x", intersect: false },
        elements: { point: over.point, line: { borderWidth: 2, tension: 0 } },
        scales: {
          x: { type: "linear", grid: { display: false }, ...over.x },
          y: { ...over.y, ticks: { maxTicksLimit: 5, callback: (value) => this.text(value) } },
        },
        plugins: {
          legend: { position: "bottom", align: "start", labels: { boxWidth: 12, boxHeight: 2 } },
          tooltip: {
            callbacks: {
              title: (items) => (items.length > 0 ? over.at(items[0].parsed.x) : ""),
              label: ({ dataset, parsed, raw }) => `${dataset.label}: ${this.text(parsed.y)}${raw?.note ? `, ${raw.note}` : ""}`,
            },
          },
        },
      },
    });
    onTheme(() => this.draw());
    this.draw();
  }

  /** Sets the lines. A line with the same label is kept. fill(line, series) gives a line its points. */
  setLines(series, fill) {
    const old = new Map(this.chart.data.datasets.map((one) => [one.label, one]));
    this.chart.data.datasets = series.map((line) => {
      const one = old.get(line.label) || { label: line.label };
      fill(one, line);
      return one;
    });
    this.draw();
  }

  /** Shows as many numbers below the chart as fit side by side. */
  fit(width) {
    if (this.chart) this.chart.options.scales.x.ticks.maxTicksLimit = Math.max(2, Math.floor((width - 100) / 90));
  }

  draw() {
    const { options, data } = this.chart;
    this.fit(this.chart.width);
    for (const axis of [options.scales.x, options.scales.y]) {
      axis.ticks.color = color("--muted");
      axis.grid.color = color("--line");
      axis.grid.borderColor = color("--line");
    }
    options.plugins.legend.labels.color = color("--text");
    data.datasets.forEach((one, index) => {
      const number = one.number ?? index;
      one.borderColor = color(`--line-${number % kLines}`);
      one.backgroundColor = one.borderColor;
      one.borderDash = number < kLines ? [] : [4, 3];
    });
    this.chart.update("none");
  }
}

export class TimeChart extends LineChart {
  constructor(canvas, text) {
    super(canvas, text, {
      plugins: [marksPlugin],
      point: { radius: 0, hitRadius: 8 },
      x: { bounds: "data", ticks: { maxRotation: 0, callback: clock } },
      y: { beginAtZero: true },
      at: clock,
    });
  }

  /** series: [{label, points: [{x: ms, y}]}], which are not copied; marks: as in marksPlugin. */
  set(series, marks) {
    this.chart.marks = marks;
    this.setLines(series, (one, { points }) => {
      one.data = points;
    });
  }
}

// If there are more points than this, only the best and the last one are drawn as points.
const kPointsSeen = 30;

/**
 * The ranges of the axes: {x, y}, each {min, max}. If all points have one epoch, or one value, Chart.js would choose strange
 * ranges; where it chooses good ones, the range is {}.
 */
export function rangesOf(series) {
  const around = (values, least, part) => {
    const low = Math.min(...values);
    if (values.length === 0 || low !== Math.max(...values)) return {};
    const space = Math.max(part * Math.abs(low), low === 0 ? 1 : least);
    return { min: low - space, max: low + space };
  };
  const points = series.flatMap((line) => line.points).filter(({ y }) => y !== null);
  return { x: around(points.map(({ x }) => x), 0.5, 0), y: around(points.map(({ y }) => y), 0, 0.1) };
}

export class EpochChart extends LineChart {
  constructor(canvas, text) {
    super(canvas, text, {
      plugins: [],
      point: { hitRadius: 8 },
      x: { bounds: "data", ticks: { maxRotation: 0, precision: 0, callback: (value) => (Number.isInteger(value) ? value : null) } },
      y: { grace: "5%" },
      at: (epoch) => `Epoch ${epoch}`,
    });
  }

  /** series: [{label, number: of its colour, best: its epoch or null, points: [{x: epoch from 1, y, note}]}]. */
  set(series) {
    const { scales } = this.chart.options;
    for (const [axis, { min, max }] of Object.entries(rangesOf(series))) Object.assign(scales[axis], { min, max });
    this.setLines(series, (one, { number, best, points }) => {
      one.number = number;
      one.data = points;
      one.pointStyle = points.map(({ x }) => (x === best ? "rectRot" : "circle"));
      one.pointRadius = points.map(({ x }, place) => {
        if (x === best) return 7;
        return points.length <= kPointsSeen || place === points.length - 1 ? 3 : 0;
      });
    });
  }
}
