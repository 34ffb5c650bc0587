// What is known of the job, and who wants to hear that a part of it has changed. Views are called
// once per frame, and not while the page is hidden: then they catch up when it is seen again.

// Events kept; older ones are asked for when they are wanted.
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
    this.mapOfEnd = false;  // it was asked for when the job had ended
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
    this.eventsBefore = null;  // those up to this id are not here yet; null: none was heard of
  }

  get ended() {
    return hasEnded(this.job);
  }

  /** Whether orders can be given now. */
  get live() {
    return this.connection.state === "live";
  }

  /** After which one the stream is to go on; null: with whatever comes next. */
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

  /** What one view cannot show must not keep the others from showing theirs. */
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
    // Another job, or a log that began again: what we have is not its past.
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

  /** Of the stream: newer than all we have, or one that we have already. */
  takeEvent(event) {
    if (this.eventsBefore === null) this.eventsBefore = event.id - 1;
    if (event.id <= this.lastEventId) return;
    this.events.push(event);
    this.link(event);
    if (this.events.length > kEventsMax) this.eventsBefore = this.events.shift().id;
    this.changed("events");
  }

  /** A page of events that are all older than ours; `before`: the id that it was asked after. */
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
