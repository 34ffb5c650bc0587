// Collects figures over time from /api/v1/samples, which returns them piece by piece.

// Up to this window, there is a value every second; for longer windows, every 10 s.
const kFineS = 600;
// If two times are further apart, the scaler was away, so no line connects them.
const kFineGapMs = 5000;
const kCoarseGapMs = 30000;

export class SampleLog {
  constructor(windowS) {
    this.windowS = windowS;
    this.gapMs = windowS <= kFineS ? kFineGapMs : kCoarseGapMs;
    this.newestUs = 0;
    this.series = new Map();  // "node\nname" -> {node, name, unit, points: [{x: ms, y}]}
  }

  take(samples) {
    const times = samples.times_us;
    if (times.length === 0) return;
    for (const { node, name, unit, values } of samples.series) {
      const key = `${node}\n${name}`;
      if (!this.series.has(key)) this.series.set(key, { node, name, unit, points: [] });
      const points = this.series.get(key).points;
      values.forEach((y, i) => {
        const x = times[i] / 1000;
        const before = points[points.length - 1];
        if (before && x - before.x > this.gapMs) points.push({ x: before.x + 1, y: null });
        points.push({ x, y });
      });
    }
    this.newestUs = times[times.length - 1];
    const oldest = this.newestUs / 1000 - 1000 * this.windowS;
    for (const [key, series] of this.series) {
      const keep = series.points.findIndex((point) => point.x > oldest);
      if (keep < 0) this.series.delete(key);
      else series.points.splice(0, keep);
    }
  }

  /** All known figures, as [name, unit]. */
  names() {
    const units = new Map();
    for (const { name, unit } of this.series.values()) units.set(name, unit);
    return [...units].sort();
  }

  of(name) {
    return [...this.series.values()].filter((series) => series.name === name);
  }
}
