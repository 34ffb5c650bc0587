// Asks regularly for what the stream does not carry. It asks only while the page is visible and the
// scaler answers, never twice at once, and less often after errors.

const kLookMs = 250;
const kSlowestMs = 30000;

export class Poller {
  /** @param mayAsk () => whether there is a scaler to ask */
  constructor(mayAsk) {
    this.mayAsk = mayAsk;
    this.polls = new Map();
    this.asked = 0;  // questions so far; tests check that a hidden page asks none
  }

  /**
   * @param ask async () => asks, and puts the answer where it belongs
   * @param onError (message) => shows it; "" when it works again
   */
  add(name, periodMs, ask, onError) {
    this.polls.set(name, { periodMs, ask, onError, due: 0, waitMs: periodMs, busy: false });
  }

  start() {
    setInterval(() => this.look(), kLookMs);
    document.addEventListener("visibilitychange", () => this.look());
  }

  /** Asks as soon as possible, because something has changed. Without a name, it asks for everything. */
  hurry(name) {
    for (const [key, poll] of this.polls) {
      if (name === undefined || name === key) poll.due = 0;
    }
    this.look();
  }

  look() {
    if (document.hidden || !this.mayAsk()) return;
    const now = performance.now();
    for (const poll of this.polls.values()) {
      if (!poll.busy && now >= poll.due) this.ask(poll, now);
    }
  }

  async ask(poll, now) {
    poll.busy = true;
    poll.due = now + poll.waitMs;
    this.asked += 1;
    try {
      await poll.ask();
      poll.waitMs = poll.periodMs;
      poll.onError("");
    } catch (error) {
      poll.waitMs = Math.min(2 * poll.waitMs, kSlowestMs);
      poll.due = performance.now() + Math.max(poll.waitMs, 1000 * (error.retryAfterSeconds || 0));
      // If there is no answer at all, the connection reports that for the whole page.
      if (error.status !== 0) poll.onError(error.message);
    }
    poll.busy = false;
  }
}
