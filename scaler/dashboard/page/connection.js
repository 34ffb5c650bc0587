// Keeps one stream to the scaler open, and reports at once when there is none. EventSource would do
// the same, but it cannot send the token.

import { EventStreamParser } from "./event_stream.js";

// A status comes every second. After this much silence, the connection counts as lost.
const kSilenceMs = 1800;
const kLookMs = 200;
const kFirstWaitMs = 250;
const kLongestWaitMs = 5000;

export class Connection {
  /**
   * @param api where the stream is opened
   * @param handlers onStatus(document), onEvent(event), onState(state, detail); states: connecting,
   *     live, lost, paused, denied (the token is missing or wrong, so nothing more is tried).
   * @param lastEventId () => the id of the event after which the stream continues
   */
  constructor(api, handlers, lastEventId) {
    this.api = api;
    this.handlers = handlers;
    this.lastEventId = lastEventId;
    this.waitMs = kFirstWaitMs;
    this.lost = false;  // until the next status; attempts in between are not reported
    this.paused = false;
  }

  /** Closes the stream until resume(), because a browser has only six connections for all tabs that show a job. */
  pause() {
    this.paused = true;
    this.controller?.abort();
    this.endWait?.();
  }

  /** Continues, or tries again, at once and without the rest of the wait. */
  resume() {
    this.paused = false;
    this.waitMs = kFirstWaitMs;
    this.endWait?.();
  }

  async run() {
    for (;;) {
      if (this.paused) {
        this.handlers.onState("paused", "");
        await new Promise((resolve) => { this.endWait = resolve; });
        continue;
      }
      if (!this.lost) this.handlers.onState("connecting", "");
      const why = await this.readUntilItEnds();
      this.lost = !this.paused;
      if (this.paused) continue;
      if (why.status === 401) {
        this.handlers.onState("denied", why.message);
        return;
      }
      this.handlers.onState("lost", why.message);
      await this.wait(Math.max(this.waitMs, 1000 * (why.retryAfterSeconds || 0)));
      this.waitMs = Math.min(2 * this.waitMs, kLongestWaitMs);
    }
  }

  /** Reads the stream until an error ends it, and returns the error. */
  async readUntilItEnds() {
    this.controller = new AbortController();
    let heard = performance.now();
    const watch = setInterval(() => {
      if (performance.now() - heard > kSilenceMs) this.controller.abort();
    }, kLookMs);
    try {
      const parser = new EventStreamParser((message) => this.take(message));
      const path = "/api/v1/stream?topics=events,status";
      const response = await this.api.openStream(path, this.lastEventId(), this.controller.signal);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return new Error("The scaler closed the connection.");
        heard = performance.now();
        parser.push(value);
      }
    } catch (error) {
      if (error.name === "AbortError") return new Error("The scaler is silent.");
      if (error.status === undefined) return new Error("The connection broke off.");
      return error;
    } finally {
      clearInterval(watch);
    }
  }

  take(message) {
    const document = JSON.parse(message.data);
    if (message.name === "event") {
      this.handlers.onEvent(document);
    } else if (message.name === "status") {
      this.lost = false;
      this.waitMs = kFirstWaitMs;
      this.handlers.onStatus(document);
      this.handlers.onState("live", "");
    }
  }

  /** Waits a little less than it is told, at random, so that many pages do not come back at one moment. */
  wait(milliseconds) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds * (0.75 + 0.25 * Math.random()));
      this.endWait = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
