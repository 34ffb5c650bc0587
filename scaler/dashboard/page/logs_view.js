// Shows the end of a node's log, and follows it line by line.

import { byId, fillOptions, setText, show } from "./dom.js";

const kLinesMax = 2000;

/** The shown part of one node's log. */
class ShownLog {
  constructor(node, follow) {
    this.node = node;
    this.follow = follow;
    this.loaded = false;
    this.next = 0;
    this.fresh = [];  // lines that are not on the page yet
  }

  take(chunk) {
    if (this.loaded && chunk.skipped) this.fresh.push("… lines are missing here, because the log does not keep them …");
    this.fresh.push(...chunk.lines);
    this.next = chunk.next_offset;
    this.loaded = true;
  }
}

export function addLogsView(store, poller) {
  const select = byId("logs-node");
  const follow = byId("logs-follow");
  const lines = byId("logs-lines");

  function choose(name) {
    store.log = new ShownLog(name, follow.checked);
    lines.replaceChildren();
    select.value = name;
    poller.hurry("log");
  }
  store.chooseLog = choose;
  select.addEventListener("change", () => choose(select.value));
  follow.addEventListener("change", () => {
    if (store.log) store.log.follow = follow.checked;
    poller.hurry("log");
  });

  store.view(["nodes"], () => {
    fillOptions(select, store.nodes.map((node) => [node.name, node.name]));
    if (!store.log && store.nodes.length > 0) {
      const first = store.nodes.find((node) => node.role === "worker") || store.nodes[0];
      choose(first.name);
    }
  });

  store.view(["log"], () => {
    const log = store.log;
    if (!log) return;
    const atEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 8;
    // Each piece of text has a DOM node of its own, so old ones can be removed without changing the others.
    for (const line of log.fresh) lines.append(`${line}\n`);
    log.fresh = [];
    while (lines.childNodes.length > kLinesMax) lines.firstChild.remove();
    show(byId("logs-empty"), log.loaded && lines.childNodes.length === 0);
    setText(byId("logs-empty"), `${log.node} has not written anything yet.`);
    if (atEnd && log.follow) lines.scrollTop = lines.scrollHeight;
  });
}
