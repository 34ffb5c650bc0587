// The orders that people can give: when they are possible, what is said before they are given, and
// what is sent. Each function returns null where the order makes no sense now; what else speaks
// against it only the scaler knows, and says.

import { bytes, cores, count, plural } from "./format.js";

const kMiB = 1 << 20;
const kGoesOn = "Lost: nothing. What was trained counts once, whatever is done twice.";

const reason = { name: "reason", label: "Reason (for the record, may be empty)", type: "text", maxlength: 200 };

/** Neither ended nor on the way to it. */
function trains(store) {
  return store.job !== null && store.job.state === "running";
}

function lives(store) {
  return trains(store) || (store.job !== null && store.job.state === "draining");
}

/** Master and scaler belong to `muster run`, which starts them again by itself. */
export function takesOrders(node) {
  return node.role === "worker" || node.role === "ps";
}

function hasLeft(node) {
  return node.state === "finished" || (node.role === "worker" && node.drain !== "none");
}

function restart(store, node) {
  if (!trains(store) || !takesOrders(node) || hasLeft(node)) return null;
  const facts = node.role === "worker"
    ? [
      `The process of ${node.name} (start ${node.start}) is ended and started again.`,
      `Runs again: the minibatches of the ${plural(node.worker?.shards_held ?? 0, "shard")} it holds that were not finished.`,
    ]
    : [
      `The process of ${node.name} (start ${node.start}) is ended, started again, and takes its partitions from the newest snapshots.`,
      "Meanwhile workers that need it wait. Runs again: shards whose pushes came after those snapshots. Drain it first, and that is little.",
    ];
  return {
    title: `Restart ${node.name}?`,
    facts: [...facts, kGoesOn],
    fields: [reason],
    confirm: `Restart ${node.name}`,
    path: `nodes/${node.name}/restart`,
    body: (values) => ({ reason: values.reason, only_start: node.start }),
  };
}

function drainNode(store, node) {
  if (!trains(store) || !takesOrders(node) || node.state !== "running" || node.drain !== "none") return null;
  const facts = node.role === "worker"
    ? [
      `${node.name} gets no more shards, hands back those that wait, finishes those in work, and ends. It is not started again in this run; the others do its work.`,
      "Lost: nothing. Runs again: nothing, unless it is not done in time; then its shards run elsewhere.",
    ]
    : [
      `Every partition of ${node.name} is snapshotted at once. It goes on serving; ending it then costs little.`,
      "Lost: nothing. Runs again: nothing.",
    ];
  return {
    title: `Drain ${node.name}?`,
    facts,
    fields: [reason],
    confirm: `Drain ${node.name}`,
    path: `nodes/${node.name}/drain`,
    body: (values) => ({ reason: values.reason }),
  };
}

function resize(store, node) {
  if (!lives(store) || !takesOrders(node) || hasLeft(node)) return null;
  const { memory_bytes: memory, cpus } = node.limits;
  const used = node.usage ? `It uses ${bytes(node.usage.memory_bytes)} and ${cores(node.usage.cpus ?? 0)} now. ` : "";
  return {
    title: `Resize ${node.name}?`,
    facts: [
      `${used}Its limits are ${memory > 0 ? bytes(memory) : "not set"} of memory and ${cpus > 0 ? cores(cpus) : "no limit"} of CPU.`,
      "Limits are changed in place where that is enough; the process goes on. Less memory than it uses is refused.",
      kGoesOn,
    ],
    fields: [
      { name: "memory", label: "Memory, MiB", type: "number", min: 16, step: "any", value: memory > 0 ? memory / kMiB : "" },
      { name: "cpus", label: "CPU", type: "number", min: 0.01, step: "any", value: cpus > 0 ? cpus : "" },
      reason,
    ],
    confirm: `Resize ${node.name}`,
    path: `nodes/${node.name}/resize`,
    body(values) {
      const body = { reason: values.reason };
      const wanted = Math.round(Number(values.memory) * kMiB);
      if (values.memory !== "" && wanted !== memory) body.memory_bytes = wanted;
      if (values.cpus !== "" && Number(values.cpus) !== cpus) body.cpus = Number(values.cpus);
      return body;
    },
    check: (body) => (body.memory_bytes === undefined && body.cpus === undefined ? "Nothing is different yet." : ""),
  };
}

/** The buttons of a node. */
export const kNodeOrders = [["Restart", restart], ["Drain", drainNode], ["Resize", resize]];

export function scale(store) {
  if (!trains(store)) return null;
  const { workers_wanted: workers, workers_min: min, workers_max: max } = store.job;
  return {
    title: "Another number of workers?",
    facts: [
      `${plural(workers, "worker")} ${workers === 1 ? "is" : "are"} wanted now; those that start, or are started again, are among them.`,
      "More: they are started and take shards at once. Fewer: those with the highest numbers finish their shards or hand them back, then end.",
      "Lost: nothing. Runs again: nothing.",
    ],
    fields: [{ name: "workers", label: "Workers", type: "number", min, max, step: 1, value: workers, required: true }, reason],
    confirm: "Change the number",
    path: "workers/scale",
    body: (values) => ({ workers: Number(values.workers), reason: values.reason }),
    check: (body) => (body.workers === workers ? `${plural(workers, "worker")} ${workers === 1 ? "is" : "are"} wanted already.` : ""),
  };
}

export function drainJob(store) {
  if (!trains(store)) return null;
  return {
    title: `Drain ${store.job.name}?`,
    facts: [
      "No new shards are given out. Workers finish theirs, servers take snapshots, then everything ends.",
      "Lost: nothing. Running the job again goes on from there.",
    ],
    fields: [reason],
    confirm: "Drain the job",
    danger: true,
    path: "job/drain",
    body: (values) => ({ reason: values.reason }),
  };
}

export function cancelJob(store) {
  if (!lives(store)) return null;
  return {
    title: `Cancel ${store.job.name}?`,
    facts: [
      "The job ends now, before its end. What is committed stays on disk.",
      "Running the job again goes on from there. Runs again: everything that is not committed yet.",
      "If you drain the job instead, it takes snapshots first, and nothing runs again.",
    ],
    fields: [reason],
    confirm: "Cancel the job",
    danger: true,
    path: "job/cancel",
    body: (values) => ({ reason: values.reason }),
  };
}

/** `shards`: ids; none: all that are FAILED. */
export function retry(store, shards) {
  if (!trains(store) || store.failed.total === 0) return null;
  const many = shards === undefined;
  return {
    title: many ? `Retry ${plural(store.failed.total, "failed shard")}?` : `Retry shard ${shards[0]}?`,
    facts: [
      "Back to the queue; their failures are forgotten, so each has all its tries again.",
      "Runs again: what of them was not finished. Lost: nothing. What makes them fail may make them fail again.",
    ],
    fields: [],
    confirm: many ? `Retry ${count(store.failed.total)}` : "Retry it",
    path: "shards/retry",
    body: () => (many ? {} : { shards }),
    poll: "shards",
    settled: true,
  };
}

export function pauseOrResume(store, policy) {
  if (!lives(store)) return null;
  const verb = policy.paused ? "resume" : "pause";
  return {
    title: `${policy.paused ? "Resume" : "Pause"} ${policy.name}?`,
    facts: policy.paused
      ? ["It decides again, from what it sees from now on."]
      : ["It goes on watching and decides nothing until it is resumed. Nothing that runs is disturbed."],
    fields: [reason],
    confirm: policy.paused ? "Resume it" : "Pause it",
    path: `policies/${policy.name}/${verb}`,
    body: (values) => ({ reason: values.reason }),
    poll: "policies",
    settled: true,
  };
}
