// Figures over time: the newest ten minutes of what /api/v1/samples gives, piece by piece.

const kWindowUs = 600e6;
// Times that are further apart are not joined by a line: the scaler was away.
const kGapMs = 5000;

export class SampleLog {
  constructor() {
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
        if (before && x - before.x > kGapMs) points.push({ x: before.x + 1, y: null });
        points.push({ x, y });
      });
    }
    this.newestUs = times[times.length - 1];
    const oldest = (this.newestUs - kWindowUs) / 1000;
    for (const [key, series] of this.series) {
      const keep = series.points.findIndex((point) => point.x > oldest);
      if (keep < 0) this.series.delete(key);
      else series.points.splice(0, keep);
    }
  }

  /** The figures that there are, [name, unit]. */
  names() {
    const units = new Map();
    for (const { name, unit } of this.series.values()) units.set(name, unit);
    return [...units].sort();
  }

  of(name) {
    return [...this.series.values()].filter((series) => series.name === name);
  }
}
