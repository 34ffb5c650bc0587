// Holds what is known of the job, and tells views when a part of it has changed. Views are called once
// per frame. While the page is hidden, they are not called; they catch up when it is visible again.

// The most events to keep. Older ones are loaded when the user wants them.
const kEventsMax = 2000;

const kEnded = ["succeeded", "failed", "cancelled", "stopped", "drained"];

export function hasEnded(job) {
  return job !== null && kEnded.includes(job.state);
}

export class Store {
  constructor() {
    this.connection = { state: "connecting", detail: "", since: Date.now() };
    this.seenAt = 0;  // when the last status came, by our clock
    this.job = null;
    this.nodes = [];
    this.datasets = [];
    this.shown = null;  // {dataset, epoch} of the shard map; null: nothing to show
    this.map = null;
    this.mapOfEnd = false;  // the map was loaded after the job's end
    this.failed = { total: 0, shards: [] };
    this.partitions = { total: 0, partitions: [], at: 0 };
    this.policies = [];
    this.samples = null;
    this.samplesWindowS = 600;
    this.log = null;
    this.clearEvents();
    this.views = [];
    this.dirty = new Set();
    this.framePending = false;
  }

  clearEvents() {
    this.events = [];  // by id, oldest first
    this.effects = new Map();  // id of an event -> events that it led to
    this.eventsBefore = null;  // events up to this id are not loaded yet; null: no event is known
  }

  get ended() {
    return hasEnded(this.job);
  }

  /** True if orders can be given now. */
  get live() {
    return this.connection.state === "live";
  }

  /** The id of the event after which the stream continues; null: it continues with the next one. */
  get lastEventId() {
    return this.events.length === 0 ? this.eventsBefore : this.events[this.events.length - 1].id;
  }

  /** `update` is called after a change of one of `parts`. */
  view(parts, update) {
    const view = { parts, update };
    this.views.push(view);
    parts.forEach((part) => this.dirty.add(part));
    this.schedule();
  }

  set(part, value) {
    this[part] = value;
    this.changed(part);
  }

  changed(part) {
    this.dirty.add(part);
    this.schedule();
  }

  schedule() {
    if (this.framePending) return;
    this.framePending = true;
    requestAnimationFrame(() => {
      this.framePending = false;
      const dirty = this.dirty;
      this.dirty = new Set();
      for (const view of this.views) {
        if (view.parts.some((part) => dirty.has(part))) this.update(view);
      }
    });
  }

  /** If one view fails, the others are still called. */
  update(view) {
    try {
      view.update(this);
    } catch (error) {
      console.error(error);
    }
  }

  takeStatus(status) {
    this.seenAt = Date.now();
    const job = status.job;
    // This is another job, or its event log began again. Our events do not belong to it.
    const replaced = this.job && (job.id !== this.job.id ||
      (job.scaler_started_wall_us !== this.job.scaler_started_wall_us && job.last_event_id < this.lastEventId));
    if (replaced) this.clearEvents();
    if (this.eventsBefore === null) {
      this.eventsBefore = job.last_event_id;
      this.changed("events");
    }
    this.job = job;
    this.nodes = status.nodes;
    this.changed("job");
    this.changed("nodes");
  }

  /** Takes an event of the stream. It is newer than all that we have, or we have it already. */
  takeEvent(event) {
    if (this.eventsBefore === null) this.eventsBefore = event.id - 1;
    if (event.id <= this.lastEventId) return;
    this.events.push(event);
    this.link(event);
    if (this.events.length > kEventsMax) this.eventsBefore = this.events.shift().id;
    this.changed("events");
  }

  /** Takes a page of events that are all older than ours. */
  takeOlder(events, before) {
    this.events = [...events, ...this.events];
    events.forEach((event) => this.link(event));
    this.eventsBefore = before;
    this.changed("events");
  }

  link(event) {
    if (!event.cause_id) return;
    const known = this.effects.get(event.cause_id) || [];
    if (!known.some((other) => other.id === event.id)) {
      this.effects.set(event.cause_id, [...known, event]);
    }
  }

  setConnection(state, detail) {
    const was = this.connection;
    if (was.state === state && was.detail === detail) return;
    const since = was.state === state ? was.since : Date.now();
    this.connection = { state, detail, since };
    this.changed("connection");
  }
}
