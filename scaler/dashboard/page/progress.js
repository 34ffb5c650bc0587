// How far the training of a job is. If a topic has no known end, there is no whole to be a part of.

import { count, percent, plural, short } from "./format.js";

/** Nobody knows how much of the dataset is still to come. */
export function isEndless({ stream }) {
  if (!stream?.open) return false;
  const { partitions } = stream;
  return partitions.length === 0 || partitions.some(({ end }) => end === null || end === undefined);
}

/**
 * What the page says of the progress.
 * @returns {title, figures: [[name, text]], done, committed: parts of the bar in percent; null: there is no bar}
 */
export function progressOf(progress, datasets) {
  const { records_expected: expected, records_done: done, records_committed: committed } = progress;
  const uncommitted = ["Done, not yet committed", count(Math.max(0, done - committed))];
  if (datasets.some(isEndless)) {
    return {
      title: `${short(committed)} records`,
      figures: [["Training records committed", count(committed)], uncommitted, ["Behind", plural(Math.max(0, expected - done), "record")]],
      done: null,
      committed: null,
    };
  }
  const part = (records) => Math.min(100, (100 * records) / Math.max(1, expected));
  return {
    title: percent(committed, expected),
    figures: [["Training records committed", `${count(committed)} of ${count(expected)} (${percent(committed, expected)})`], uncommitted],
    done: part(done),
    committed: part(committed),
  };
}
