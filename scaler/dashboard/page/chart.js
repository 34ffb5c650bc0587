// Lines over time with Chart.js, in the colours of the page.

const kLines = 8;
const themeListeners = [];

/** `update` is called when the page becomes dark or light. */
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

/** Draws chart.marks, moments in which something happened: [{x: ms, label, color}]. */
const marksPlugin = {
  id: "marks",
  afterDatasetsDraw(chart) {
    const { ctx: context, chartArea: area, scales: { x } } = chart;
    context.save();
    context.font = "11px sans-serif";
    context.setLineDash([3, 3]);
    let free = -Infinity;  // labels that would cover each other are left out
    for (const mark of chart.marks || []) {
      if (mark.x < x.min || mark.x > x.max) continue;
      const at = Math.round(x.getPixelForValue(mark.x));
      context.strokeStyle = color(mark.color);
      context.fillStyle = context.strokeStyle;
      context.beginPath();
      context.moveTo(at, area.top);
      context.lineTo(at, area.bottom);
      context.stroke();
      if (at < free) continue;
      context.fillText(mark.label, at + 3, area.top + 10);
      free = at + 6 + context.measureText(mark.label).width;
    }
    context.restore();
  },
};

export class TimeChart {
  /** @param text (value) => how the figure of the vertical axis is written */
  constructor(canvas, text) {
    this.text = text;
    this.chart = new window.Chart(canvas, {
      type: "line",
      data: { datasets: [] },
      plugins: [marksPlugin],
      options: {
        onResize: (_, { width }) => this.fit(width),
        animation: false, parsing: false, normalized: true, responsive: true, maintainAspectRatio: false,
        interaction: { mode: "nearest", axis: "x", intersect: false },
        elements: { point: { radius: 0, hitRadius: 8 }, line: { borderWidth: 2, tension: 0 } },
        scales: {
          x: { type: "linear", bounds: "data", grid: { display: false }, ticks: { maxRotation: 0, callback: clock } },
          y: { beginAtZero: true, ticks: { maxTicksLimit: 5, callback: (value) => this.text(value) } },
        },
        plugins: {
          legend: { position: "bottom", align: "start", labels: { boxWidth: 12, boxHeight: 2 } },
          tooltip: {
            callbacks: {
              title: (items) => (items.length > 0 ? clock(items[0].parsed.x) : ""),
              label: (item) => `${item.dataset.label}: ${this.text(item.parsed.y)}`,
            },
          },
        },
      },
    });
    onTheme(() => this.draw());
    this.draw();
  }

  /** series: [{label, points: [{x: ms, y}]}], which are not copied; marks: [{x: ms, label, color}]. */
  set(series, marks) {
    this.chart.marks = marks;
    const old = new Map(this.chart.data.datasets.map((one) => [one.label, one]));
    this.chart.data.datasets = series.map(({ label, points }) => {
      const one = old.get(label) || { label };
      one.data = points;
      return one;
    });
    this.draw();
  }

  /** As many times below the chart as fit side by side. */
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
      one.borderColor = color(`--line-${index % kLines}`);
      one.backgroundColor = one.borderColor;
      one.borderDash = index < kLines ? [] : [4, 3];
    });
    this.chart.update("none");
  }
}
