// The timeline: newest events first, filtered by kind. Each event has links to its cause and its effects.

import { byId, element, reconcile, setAttribute, setText, show } from "./dom.js";
import { eventCard, kKinds } from "./event_card.js";

const kOlder = 100;
const kShownFirst = 100;
// If there are fewer events, the page was opened late, and older ones are loaded without a click.
const kFew = 20;

export function addEventsView(store, api) {
  const list = byId("events-list");
  const more = byId("events-more");
  const empty = byId("events-empty");
  const kinds = new Set(kKinds.map(([kind]) => kind));
  let shownMax = kShownFirst;
  let loading = false;

  async function loadOlder() {
    if (loading || !store.eventsBefore) return;
    loading = true;
    const last = store.eventsBefore;
    const before = Math.max(0, last - kOlder);
    try {
      const { events } = await api.get(`/api/v1/events?after=${before}&limit=${last - before}`);
      if (store.eventsBefore === last) store.takeOlder(events.filter((event) => event.id <= last), before);
    } catch (error) {
      setText(more, `Show older events (the last try failed: ${error.message.replace(/\.$/, "")})`);
    }
    loading = false;
  }

  /** Scrolls to an event and gives it the focus. */
  async function goTo(id) {
    for (const [kind] of kKinds) kinds.add(kind);
    while (id <= store.eventsBefore && !loading) {
      const before = store.eventsBefore;
      await loadOlder();
      if (store.eventsBefore === before) return;  // the reason is shown beside the button
    }
    shownMax = Math.max(shownMax, store.events.filter((event) => event.id >= id).length);
    update();
    const card = byId(`event-${id}`);
    card?.scrollIntoView({ block: "nearest" });
    card?.focus({ preventScroll: true });
  }

  function link(text, id) {
    return element("button", { type: "button", class: "link", text, click: () => goTo(id) });
  }

  function links(event) {
    const effects = store.effects.get(event.id) || [];
    const all = event.cause_id ? [link(`because of #${event.cause_id}`, event.cause_id)] : [];
    for (const effect of effects) {
      const verdict = effect.verdict ? ` (${effect.verdict})` : "";
      all.push(link(`led to #${effect.id}, ${effect.kind}${verdict}`, effect.id));
    }
    return all;
  }

  function fill(item, event) {
    const version = String((store.effects.get(event.id) || []).length);
    if (item.dataset.version === version) return;
    const open = item.querySelector("details")?.open;
    item.dataset.version = version;
    item.replaceChildren(eventCard(event, links(event)));
    const details = item.querySelector("details");
    if (details && open) details.open = true;
  }

  function update() {
    const wanted = store.events.filter((event) => kinds.has(event.kind)).reverse();
    reconcile(list, wanted.slice(0, shownMax), (event) => event.id,
      (event) => element("li", { id: `event-${event.id}`, tabindex: "-1" }), fill);
    show(empty, wanted.length === 0);
    setText(empty, store.events.length === 0
      ? "The job has no events yet."
      : "The job has no events of the chosen kinds.");
    show(more, wanted.length > shownMax || store.eventsBefore > 0);
    for (const button of filter.children) {
      setAttribute(button, "aria-pressed", String(kinds.has(button.dataset.kind)));
    }
    if (store.events.length < kFew && store.eventsBefore > 0) loadOlder();
  }

  const filter = byId("events-filter");
  filter.append(...kKinds.map(([kind, text]) => element("button", {
    type: "button", class: "toggle", text, "data-kind": kind, "aria-pressed": "true",
    click: () => {
      if (!kinds.delete(kind)) kinds.add(kind);
      update();
    },
  })));
  more.addEventListener("click", async () => {
    shownMax += kOlder;
    setText(more, "Show older events");
    if (store.eventsBefore > 0) await loadOlder();
    update();
  });
  store.view(["events"], update);
}
