// How long the job still takes: as the scaler estimates it, but steadier.

// The first estimates come from rates of workers that have hardly begun.
const kSettleMs = 10000;
// What was estimated longer ago than this hardly counts.
const kMemoryMs = 30000;

export class RemainingTime {
  constructor() {
    this.clear();
  }

  clear() {
    this.firstMs = null;
    this.newestMs = 0;
    this.endMs = 0;  // when the job ends
  }

  /**
   * Takes an estimate in seconds, null: there is none, as of `nowMs`. One of the same moment as before is not counted again.
   * Returns what to show, in seconds; null: not known yet.
   */
  take(estimate, nowMs) {
    if (estimate === null) {
      this.clear();
      return null;
    }
    if (this.firstMs === null) {
      this.firstMs = nowMs;
      this.endMs = nowMs + 1000 * estimate;
    } else if (nowMs > this.newestMs) {
      // The mean of all estimates while there are few; later, the newer they are the more they count.
      const weight = Math.min(1, (nowMs - this.newestMs) / Math.min(kMemoryMs, nowMs - this.firstMs));
      this.endMs += weight * (nowMs + 1000 * estimate - this.endMs);
    }
    this.newestMs = Math.max(this.newestMs, nowMs);
    // A short job is over before its estimates are steady.
    const settled = nowMs - this.firstMs >= kSettleMs || 1000 * estimate <= kSettleMs;
    return settled ? Math.max(0, (this.endMs - nowMs) / 1000) : null;
  }
}
