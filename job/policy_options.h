#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

/// The thresholds of the policies (scaler/policy), with the reasons for their defaults. A job file
/// can set some, and users see most of them; thresholds.h has their names. Plain values.
namespace muster {

struct CrashLoopOptions {
  /// Ends of one node in a row without progress. Enough for a dependency that is away for a
  /// moment (restarts back off), few enough to see the message within a minute.
  uint32_t ends_max = 5;
};

struct OutOfMemoryOptions {
  /// Factor on the limit, or on the peak if that is larger. Kubernetes' vertical autoscaler uses
  /// 1.2 and often needs several kills; DLRover uses 2, which is more than most tables still grow.
  double factor = 1.5;
  /// If the bound allows less than this factor, the limit is not raised: the next kill would
  /// follow.
  double gain_min = 1.05;
  /// A limit that is now this much above the limit at the kill counts as already raised.
  double raised_already = 1.2;
};

struct InitialResourcesOptions {
  /// Without history: the share that is handed out at first. The rest is for nodes that need more,
  /// and for new workers.
  double handed_out = 0.5;
  /// Share of the machine's memory; the rest is for the system, the master and page cache.
  double machine_share = 0.8;
  /// Factor on the earlier peak, as after a kill, because memory that grew once grows again.
  double memory_margin = 1.5;
  /// The margin of a small peak is small, too, and a limit near the peak would soon kill.
  uint64_t memory_min_bytes = uint64_t{64} << 20;
  double cpu_margin = 1.5;
  /// Starting up needs more than training's 95th percentile.
  double cpus_min = 1.0;
};

struct PredictedOutOfMemoryOptions {
  /// What the fit looks at: several garbage collections or snapshots, and no more than what still
  /// says something about now.
  std::chrono::seconds window{60};
  /// After a start: loading code and data is a ramp, not growth.
  std::chrono::seconds settle{5};
  /// For a fit that a few odd readings cannot turn.
  uint64_t points_min = 8;
  std::chrono::seconds span_min{8};
  /// Below this usage, a node has enough memory; above it, growth is predicted.
  double usage_min = 0.75;
  /// The limit must be reached within this time. A raise in place takes effect at once, so this
  /// time is for growth that gets faster.
  std::chrono::seconds horizon{60};
  /// Kendall's tau: how many pairs of readings rise rather than fall. Noise gives 0 +- 0.25 with
  /// 8 points and less with more, a sawtooth of several teeth about 0.
  double concordance_min = 0.7;
  /// Growth over the window against the noise around the line, and against the limit.
  double growth_to_noise_min = 4;
  double growth_of_limit_min = 0.01;
  /// Usage must be above everything before the window by so much: a sawtooth comes back.
  double new_high = 1.01;
  /// So many steps with new readings in a row.
  uint32_t confirmations = 3;
  /// As after a kill; more where the line says so: what is needed two horizons from now.
  double factor = 1.5;
  double gain_min = 1.05;
};

struct HangOptions {
  /// Without a minibatch. Far above any minibatch of a trainer on one machine, far below the 10
  /// to 30 minutes that others wait.
  std::chrono::seconds silence_min{60};
  /// And this many times the node's longest time from one minibatch to the next, including its
  /// start: a trainer with slow minibatches does not hang.
  double times_longest = 3;
  /// Before its first minibatch: models load, libraries compile. Also until the master hears it,
  /// and without a sign of a restore; doubled with each restart for that.
  std::chrono::seconds first_silence_min{300};
  /// Of its time; a worker that waits so long for rows and acknowledgements does nothing else.
  double only_waits = 0.8;
  /// Of a core: a worker that burns as much and finishes nothing loops, whatever the others do.
  double looping_cpus = 0.5;
  /// So many times as long where no other worker makes progress: they may all wait for the same.
  double alone_factor = 3;
  /// From the stacks to the restart: to write them.
  std::chrono::seconds dump_grace{5};
};

struct StragglerOptions {
  /// What a cost is taken over: long against one slow minibatch, one snapshot, one scheduling
  /// delay.
  std::chrono::seconds window{10};
  /// Of slow work: the window is doubled until it holds `work_min`, up to this, which needs a
  /// fifth.
  std::chrono::seconds window_max{160};
  /// Minibatches or requests that a cost needs.
  uint64_t work_min = 5;
  /// After a start, and after anything but training and evaluation: caches are cold, connections
  /// new.
  std::chrono::seconds settle{10};
  /// After an evaluation: a reading may lag behind what the master says by so much.
  std::chrono::milliseconds resettle{1'000};
  /// A node is slow at this many times the cost of its peers. Neighbours on one machine differ by
  /// up to 1.4 from one window to the next. A process with half of the CPU that it wants takes
  /// twice as long in all, but less for single parts, because other processes catch up while it
  /// computes.
  double slow_ratio = 1.7;
  /// A slow node stays slow until its ratio is below this.
  double clear_ratio = 1.35;
  /// For a node without peers, whose data may also have become heavier.
  double alone_ratio = 3.0;
  /// How long a node must be slow without a break, in addition to the window. It is longer than a
  /// window, so that two windows without overlap agree: one long stall does not make a node slow.
  std::chrono::seconds hold{12};
  /// A smaller excess per unit of work delays no other node.
  std::chrono::microseconds excess_min{200};
  /// A node's own history, used with fewer than two peers: at least and at most this many windows.
  uint64_t history_min = 2;
  uint64_t history_max = 60;
  /// More CPU helps a node that its quota stopped for this share of wall time.
  double throttled_min = 0.1;
  /// More CPU means this many times the limit.
  double cpu_factor = 2.0;
  double cpu_gain_min = 1.1;
  /// If a throttled node uses less than this share of its limit, another quota is in force, and
  /// ours is written again.
  double foreign_quota = 0.7;
  /// How long an action has time to help before the next one.
  std::chrono::seconds grace{20};
  /// Restarts of one node that did not help; then it is left alone until it has been well for
  /// `forgive`.
  uint32_t restarts_max = 2;
  std::chrono::seconds forgive{600};

  /// What was set asks for more of the others: a node is well again half way down at the latest,
  /// and alone it takes no less than among peers.
  void Fit() {
    clear_ratio = std::min(clear_ratio, 1 + (slow_ratio - 1) / 2);
    alone_ratio = std::max(alone_ratio, slow_ratio);
    window_max = std::max(window_max, window);
  }
};

struct ServerStragglerOptions : StragglerOptions {
  ServerStragglerOptions() {
    // A round trip hides the queue before it, so it differs more than computing does; and a
    // restart of a server costs a restore and a replay.
    slow_ratio = 2.5;
    clear_ratio = 1.5;
    hold = std::chrono::seconds(8);
    work_min = 100;
    restarts_max = 1;
  }
};

struct WorkerCountOptions {
  /// After a worker came or went, and after anything but training.
  std::chrono::seconds settle{15};
  /// One measurement of the rate; several snapshots of the servers fall into it.
  std::chrono::seconds window{20};
  /// Of one count before it is believed, and remembered at most (their median counts).
  uint64_t measurements_min = 2;
  uint64_t measurements_max = 12;
  /// What is older says nothing: the data, the model and the machine's other work have changed.
  std::chrono::seconds measurement_age_max{3600};
  /// Another worker pays when it brings so much of what one brings on the average now. DLRover
  /// stops at 0.2; a worker that brings less than a third mostly heats the machine.
  double add_min = 0.3;
  /// While the backlog of a topic grows by this part of the rate, half way from remove_max will
  /// do.
  double behind_min = 0.05;
  /// The last worker goes when it brings less. Far from add_min: no count is left and entered
  /// again by noise.
  double remove_max = 0.05;
  /// Most workers at once, because the model is not reliable far from measured numbers.
  uint32_t step_max = 2;
  /// A fit with a larger error is ignored.
  double fit_error_max = 0.15;
  /// Time that the job must have left: a worker needs time to start, and at the end all wait.
  std::chrono::seconds remaining_min{120};
  /// Share of its time. A worker that waits this long for shards has none to do; a worker that
  /// waits this long for servers does not limit the job.
  double only_waits = 0.8;
  /// Share of their time on average. With a topic, workers that wait this long for shards keep up.
  double keeps_up = 0.2;
  /// Those that keep up are as many as are so busy; far from 1 - keeps_up, as above.
  double busy = 0.6;
  /// Cores to spare, of what a worker uses, to try one more.
  double spare_cpus = 0.7;
};

struct NoRoomOptions {
  /// How long workers wait for a place in the cluster before fewer are wanted. An autoscaler needs
  /// some minutes to add a machine, and does so only for what waits.
  std::chrono::seconds hold{300};
  /// How long a node waits that asks for more than it had: while a server waits, the job does.
  std::chrono::seconds request_hold{60};
  /// From then on until as many workers as before are tried again; doubled each time.
  std::chrono::seconds retry{300};
  std::chrono::seconds retry_max{3600};
};

struct PolicyOptions {
  CrashLoopOptions crash_loop;
  OutOfMemoryOptions out_of_memory;
  InitialResourcesOptions initial_resources;
  PredictedOutOfMemoryOptions predicted_out_of_memory;
  HangOptions hang;
  ServerStragglerOptions server_straggler;
  StragglerOptions worker_straggler;
  NoRoomOptions no_room;
  WorkerCountOptions worker_count;
};

}  // namespace muster
