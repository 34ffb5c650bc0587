// Shows datasets that are topics: the position of each partition, and how much is left.

import { byId, element, fillFigures, reconcile, setAttribute, setText, show } from "./dom.js";
import { count, plural, seconds } from "./format.js";

// A topic may have thousands of partitions. It gets this many rows until the user wants to see all.
const kRowsMax = 50;

function known(value) {
  return value !== null && value !== undefined;
}

function offset(value) {
  return known(value) ? count(value) : "–";
}

const kColumns = [
  ["Committed", (partition) => offset(partition.committed)],
  ["Cut", (partition) => offset(partition.cut)],
  ["End of the log", (partition) => offset(partition.stable_end)],
  ["Lag", (partition) => offset(partition.lag)],
  ["Lag time", (partition) => known(partition.lag_ms) ? seconds(partition.lag_ms / 1000) : "–"],
  ["Open ranges", (partition) => offset(partition.open_ranges)],
  ["Lost", (partition) => offset(partition.lost)],
];

/** The partitions in the order of their numbers. If there are more than `max`, those with the largest lag, largest first. */
export function rowsOf(partitions, max) {
  const byNumber = [...partitions].sort((a, b) => a.partition - b.partition);
  return byNumber.length <= max ? byNumber : byNumber.sort((a, b) => (b.lag ?? 0) - (a.lag ?? 0)).slice(0, max);
}

/** A text about the partitions without a row; "" if all have one. */
export function leftOut(partitions, rows) {
  if (rows.length >= partitions.length) return "";
  const lost = (all) => all.filter((partition) => partition.lost > 0).length;
  const unseen = lost(partitions) - lost(rows);
  const losses = unseen > 0 ? `, ${count(unseen)} of them with lost offsets` : "";
  const more = partitions.length - rows.length;
  return `The table has the ${count(rows.length)} partitions with the largest lag. There ${more === 1 ? "is" : "are"} ${count(more)} more${losses}.`;
}

function figuresOf(stream) {
  const lost = stream.partitions.reduce((sum, partition) => sum + partition.lost, 0);
  return [
    ["Lag", known(stream.lag) ? plural(stream.lag, "offset") : "unknown"],
    ["Lag time", known(stream.lag_ms) ? seconds(stream.lag_ms / 1000) : "unknown"],
    ...(stream.held_back > 0 ? [["Held back by open transactions", plural(stream.held_back, "offset")]] : []),
    // The time from the timestamps of records to the weights. It is empty while no records come.
    ...(stream.delay?.records > 0
      ? [["Delay, median", seconds(stream.delay.p50_ms / 1000)], ["Delay, p99", seconds(stream.delay.p99_ms / 1000)]] : []),
    ["Partitions", count(stream.partitions.length)],
    ...(lost > 0 ? [["Lost", plural(lost, "offset")]] : []),
  ];
}

function makeTable(name) {
  const heads = ["Partition", ...kColumns.map(([head]) => head)];
  const table = element("table", { class: "offsets" },
    element("caption", { class: "hidden", text: `Partitions of ${name}, in offsets` }),
    element("thead", {}, element("tr", {}, ...heads.map((text) => element("th", { scope: "col", text })))),
    element("tbody"));
  return element("div", { class: "offsets-box", tabindex: 0, role: "region", "aria-label": `Partitions of ${name}` }, table);
}

function makeItem({ name }, toggle) {
  return element("li", {},
    element("div", { class: "panel-head" },
      element("h3", {}, element("span", { text: name }), " ", element("span", { class: "hint" })),
      element("span", { class: "badge" })),
    element("p", { class: "note" }),
    element("dl", { class: "figures small" }),
    makeTable(name),
    element("div", { class: "more" }, element("span", { class: "hint" }),
      element("button", { type: "button", class: "toggle", click: toggle })));
}

function makeRow({ partition }) {
  return element("tr", {}, element("th", { scope: "row", "data-label": "Partition", text: String(partition) }),
    ...kColumns.map(([head]) => element("td", { "data-label": head })));
}

function fillRow(row, partition) {
  kColumns.forEach(([, text], index) => setText(row.children[index + 1], text(partition)));
  row.lastChild.classList.toggle("lost", partition.lost > 0);
}

function fillItem(item, { name, stream }, wantsAll) {
  const [head, trouble, figures, box, more] = item.children;
  const [title, badge] = head.children;
  const { partitions } = stream;
  setText(title.lastChild, `topic ${stream.topic}`);
  setText(badge, stream.open ? "open" : "closed");
  setAttribute(badge, "data-state", stream.open ? "open" : "closed");
  const troubles = [
    ...(stream.trouble === "" ? [] : [`The topic cannot be read now: ${stream.trouble}`]),
    ...(stream.dead_letter_trouble ? [`Rejected records cannot be written to their topic: ${stream.dead_letter_trouble}`] : []),
  ];
  setText(trouble, troubles.join(" "));
  show(trouble, troubles.length > 0);
  fillFigures(figures, figuresOf(stream));
  const rows = rowsOf(partitions, wantsAll ? Infinity : kRowsMax);
  reconcile(box.querySelector("tbody"), rows, ({ partition }) => partition, makeRow, fillRow);
  show(box, rows.length > 0);
  const [left, button] = more.children;
  setText(left, leftOut(partitions, rows));
  setText(button, wantsAll ? `Show ${kRowsMax} only` : `Show all ${count(partitions.length)}`);
  setAttribute(button, "aria-label", `${button.textContent} partitions of ${name}`);
  show(more, partitions.length > kRowsMax);
}

export function addTopicsView(store) {
  const all = new Set();  // indexes of the datasets that show every partition

  function toggle(index) {
    if (!all.delete(index)) all.add(index);
    update();
  }

  function update() {
    const topics = store.datasets.filter((dataset) => dataset.stream);
    show(byId("topics"), topics.length > 0);
    show(byId("topics-link"), topics.length > 0);
    reconcile(byId("topics-list"), topics, (dataset) => `${dataset.index} ${dataset.name}`,
      (dataset) => makeItem(dataset, () => toggle(dataset.index)),
      (item, dataset) => fillItem(item, dataset, all.has(dataset.index)));
  }

  store.view(["datasets"], update);
}
