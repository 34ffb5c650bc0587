// The remaining time of the job. It is the scaler's estimate, but steadier.

// The first estimates are based on workers that have hardly begun, so they are not shown.
const kSettleMs = 10000;
// Estimates that are older than this have hardly any weight.
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
   * Takes an estimate of the time `nowMs`, in seconds; null if there is none. An estimate of the same moment as the last one
   * is not counted again. Returns the seconds to show; null if they are not known yet.
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
      // While there are few estimates, it is their mean. Later, newer estimates have more weight.
      const weight = Math.min(1, (nowMs - this.newestMs) / Math.min(kMemoryMs, nowMs - this.firstMs));
      this.endMs += weight * (nowMs + 1000 * estimate - this.endMs);
    }
    this.newestMs = Math.max(this.newestMs, nowMs);
    // A short job is over before its estimates are steady.
    const settled = nowMs - this.firstMs >= kSettleMs || 1000 * estimate <= kSettleMs;
    return settled ? Math.max(0, (this.endMs - nowMs) / 1000) : null;
  }
}
