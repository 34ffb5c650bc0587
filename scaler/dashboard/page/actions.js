// The orders that people can give: when they are possible, what the dialog says before, and what is
// sent. Each function returns null if the order makes no sense now. The scaler may have further
// reasons to refuse it, and says them.

import { bytes, cores, plural } from "./format.js";

const kMiB = 1 << 20;
const kGoesOn = "Nothing is lost. Each record takes effect once, even if it runs twice.";

const reason = { name: "reason", label: "Reason (optional, for the events)", type: "text", maxlength: 200 };

/** True unless the node has ended or is ending. */
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
      `The process of ${node.name} (start ${node.start}) ends, and Muster starts another one.`,
      `It holds ${plural(node.worker?.shards_held ?? 0, "shard")}. Their unfinished minibatches run again.`,
    ]
    : [
      `The process of ${node.name} (start ${node.start}) ends. Muster starts another one, which reads the partitions from their newest snapshots.`,
      "Workers that need it wait. Minibatches that the snapshots do not hold run again. If you drain the server first, these are few.",
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
      `${node.name} gets no more shards. It hands back the shards that wait, finishes those in work, and ends. Muster does not start it again in this run.`,
      "Nothing is lost, and nothing runs again. If it takes too long, its shards run on other workers.",
    ]
    : [
      `${node.name} takes a snapshot of each of its partitions now, and continues to serve. If it ends afterwards, little runs again.`,
      "Nothing is lost, and nothing runs again.",
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
      "If possible, the limits change while the process runs. A memory limit below the memory in use is refused.",
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
    check: (body) => (body.memory_bytes === undefined && body.cpus === undefined ? "You have not changed a limit." : ""),
  };
}

/** The buttons of a node. */
export const kNodeOrders = [["Restart", restart], ["Drain", drainNode], ["Resize", resize]];

export function scale(store) {
  if (!trains(store)) return null;
  const { workers_wanted: workers, workers_min: min, workers_max: max } = store.job;
  return {
    title: "Change the number of workers?",
    facts: [
      `The job is to have ${plural(workers, "worker")} now. This number includes workers that are starting.`,
      "New workers take shards at once. If the number gets smaller, the workers with the highest numbers finish their shards or hand them back, and end.",
      "Nothing is lost, and nothing runs again.",
    ],
    fields: [{ name: "workers", label: "Workers", type: "number", min, max, step: 1, value: workers, required: true }, reason],
    confirm: "Change the number",
    path: "workers/scale",
    body: (values) => ({ workers: Number(values.workers), reason: values.reason }),
    check: (body) => (body.workers === workers ? `The job is to have ${plural(workers, "worker")} already.` : ""),
  };
}

export function drainJob(store) {
  if (!trains(store)) return null;
  return {
    title: `Drain ${store.job.name}?`,
    facts: [
      "The master gives out no more shards. Workers finish theirs, servers take snapshots, and then everything ends.",
      "Nothing is lost. If you run the job again, it continues from there.",
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
      "All processes of the job end now. What is committed stays on disk.",
      "If you run the job again, it continues from there. What is not committed runs again.",
      "If you drain the job instead, servers take snapshots first, so nothing runs again.",
    ],
    fields: [reason],
    confirm: "Cancel the job",
    danger: true,
    path: "job/cancel",
    body: (values) => ({ reason: values.reason }),
  };
}

/** `shards` are ids; without them, all FAILED shards are meant. */
export function retry(store, shards) {
  if (!trains(store) || store.failed.total === 0) return null;
  const many = shards === undefined;
  return {
    title: many ? `Retry ${plural(store.failed.total, "failed shard")}?` : `Retry shard ${shards[0]}?`,
    facts: [
      "The shards return to the queue, and their failures no longer count.",
      "Their unfinished minibatches run again. If the cause of the failures is still there, they fail again.",
    ],
    fields: [],
    confirm: many ? `Retry ${plural(store.failed.total, "shard")}` : "Retry the shard",
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
      ? ["The policy decides again, from now on."]
      : ["The policy decides nothing until you resume it. Running processes are not affected."],
    fields: [reason],
    confirm: policy.paused ? "Resume the policy" : "Pause the policy",
    path: `policies/${policy.name}/${verb}`,
    body: (values) => ({ reason: values.reason }),
    poll: "policies",
    settled: true,
  };
}
