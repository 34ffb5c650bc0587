#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

/// The thresholds of the policies (scaler/policy), with the reasons for their defaults. A job file
/// can set some, and users see most of them; thresholds.h has their names. Plain values.
namespace muster {

struct CrashLoopOptions {
  /// This many ends of one node in a row without progress. It is enough for a dependency that is
  /// away for a moment, because restarts back off. And it is few enough that the user sees the
  /// message within a minute.
  uint32_t ends_max = 5;
};

struct OutOfMemoryOptions {
  /// The factor by which the limit is raised, or the peak if that is larger. Kubernetes' vertical
  /// autoscaler uses 1.2 and often needs several kills. DLRover uses 2, which is more than most
  /// tables still grow.
  double factor = 1.5;
  /// If the bound allows less than this factor, the limit is not raised, because the next kill
  /// would follow soon.
  double gain_min = 1.05;
  /// If the limit is now higher by this factor than at the kill, it counts as raised already.
  double raised_already = 1.2;
};

struct InitialResourcesOptions {
  /// Without earlier runs, this share of the memory is given out at first. The rest is for nodes
  /// that need more, and for new workers.
  double handed_out = 0.5;
  /// The share of the machine's memory that nodes get. The rest is for the system, the master and
  /// page cache.
  double machine_share = 0.8;
  /// The factor on the peak of earlier runs. It is the same as after a kill, because memory that
  /// grew once grows again.
  double memory_margin = 1.5;
  /// The smallest limit. For a small peak, the factor gives only a small margin, so a limit near
  /// the peak would soon kill.
  uint64_t memory_min_bytes = uint64_t{64} << 20;
  double cpu_margin = 1.5;
  /// The smallest CPU limit, because a start needs more than training's 95th percentile.
  double cpus_min = 1.0;
};

struct PredictedOutOfMemoryOptions {
  /// The time that the fit uses. It contains several garbage collections or snapshots, and is short
  /// enough to describe the present.
  std::chrono::seconds window{60};
  /// This long after a start, growth does not count, because code and data are being loaded.
  std::chrono::seconds settle{5};
  /// The fit needs this many points over this span, so that a few odd samples do not change it.
  uint64_t points_min = 8;
  std::chrono::seconds span_min{8};
  /// Growth is predicted only if usage is above this share of the limit. Below it, a node has
  /// enough memory.
  double usage_min = 0.75;
  /// The prediction says that the limit is reached within this time. A raise in place takes effect
  /// at once, so the time is only a reserve for growth that becomes faster.
  std::chrono::seconds horizon{60};
  /// The least value of Kendall's tau: how many more pairs of samples rise than fall. Noise gives 0
  /// +- 0.25 with 8 points, and less with more points. A sawtooth with several teeth gives about 0.
  double concordance_min = 0.7;
  /// The growth over the window, compared with the noise around the line, and with the limit.
  double growth_to_noise_min = 4;
  double growth_of_limit_min = 0.01;
  /// Usage must be above everything before the window by this factor. A sawtooth comes back to old
  /// values.
  double new_high = 1.01;
  /// In this many steps in a row, with new samples, growth must be found.
  uint32_t confirmations = 3;
  /// The factor on the limit is the same as after a kill. It is larger if the line says that more
  /// is needed two horizons from now.
  double factor = 1.5;
  double gain_min = 1.05;
};

struct HangOptions {
  /// A worker hangs after this time without a minibatch. It is far longer than any minibatch of a
  /// trainer on one machine, and far shorter than the 10 to 30 minutes that other systems wait.
  std::chrono::seconds silence_min{60};
  /// The time must also be this many times the node's longest time from one minibatch to the next,
  /// including its start. So a trainer with slow minibatches does not hang.
  double times_longest = 3;
  /// The time before the first minibatch, because models load and libraries compile. It is also the
  /// time until the master must hear from the process, and the time for a restore without a sign of
  /// progress. In those cases, it doubles with each restart.
  std::chrono::seconds first_silence_min{300};
  /// A worker that waits for rows and acknowledgements for this share of its time does nothing
  /// else.
  double only_waits = 0.8;
  /// A worker that uses this much of a core and finishes nothing is in a loop, whatever the others
  /// do.
  double looping_cpus = 0.5;
  /// If no other worker makes progress, the time is longer by this factor, because all may wait for
  /// the same thing.
  double alone_factor = 3;
  /// The time from the order to write stacks to the restart.
  std::chrono::seconds dump_grace{5};
};

struct StragglerOptions {
  /// The time over which a cost is measured. It is long compared with one slow minibatch, one
  /// snapshot, or one scheduling delay.
  std::chrono::seconds window{10};
  /// For slow work, the window is doubled until it contains `work_min`, up to this length. The
  /// longest window needs only a fifth of that.
  std::chrono::seconds window_max{160};
  /// How many minibatches or requests are needed to measure a cost.
  uint64_t work_min = 5;
  /// How long nothing is measured after a start, and after anything except training and evaluation,
  /// because caches are cold and connections are new.
  std::chrono::seconds settle{10};
  /// The same after an evaluation, because samples may be later than the master's report by this
  /// much.
  std::chrono::milliseconds resettle{1'000};
  /// A node is slow if its cost is this many times that of its peers. Nodes on one machine differ
  /// by up to 1.4 from one window to the next. A process with half of the CPU that it wants takes
  /// twice as long in all, but less for single parts, because other processes catch up while it
  /// computes.
  double slow_ratio = 1.7;
  /// A slow node stays slow until its ratio is below this.
  double clear_ratio = 1.35;
  /// The ratio for a node without peers. It is larger, because the node's data may have become
  /// heavier.
  double alone_ratio = 3.0;
  /// How long a node must be slow without a break, in addition to the window. It is longer than a
  /// window. So two windows that do not overlap must agree, and one long stall does not make a node
  /// slow.
  std::chrono::seconds hold{12};
  /// If the excess per unit of work is smaller, it delays no other node.
  std::chrono::microseconds excess_min{200};
  /// The least and the largest number of windows of a node's own history. It is used with fewer
  /// than two peers.
  uint64_t history_min = 2;
  uint64_t history_max = 60;
  /// More CPU helps if the quota has stopped the node for this share of wall time.
  double throttled_min = 0.1;
  /// More CPU means that the limit is multiplied by this factor.
  double cpu_factor = 2.0;
  double cpu_gain_min = 1.1;
  /// If a throttled node uses less than this share of its limit, another quota is in force. Then
  /// ours is written again.
  double foreign_quota = 0.7;
  /// How long an action has time to help before the next one.
  std::chrono::seconds grace{20};
  /// After this many restarts that did not help, the node is left alone until it has been well for
  /// `forgive`.
  uint32_t restarts_max = 2;
  std::chrono::seconds forgive{600};

  /// Adapts other thresholds to those that were set. A node must be well again at the latest when
  /// it is half way down, and without peers, the ratio must not be smaller than with peers.
  void Fit() {
    clear_ratio = std::min(clear_ratio, 1 + (slow_ratio - 1) / 2);
    alone_ratio = std::max(alone_ratio, slow_ratio);
    window_max = std::max(window_max, window);
  }
};

struct ServerStragglerOptions : StragglerOptions {
  ServerStragglerOptions() {
    // A round trip includes a queue that cannot be seen, so it varies more than computing does. And
    // a restart of a server costs a restore and a replay.
    slow_ratio = 2.5;
    clear_ratio = 1.5;
    hold = std::chrono::seconds(8);
    work_min = 100;
    restarts_max = 1;
  }
};

struct WorkerCountOptions {
  /// How long nothing is measured after a worker came or went, and after anything except training.
  std::chrono::seconds settle{15};
  /// The length of one measurement of the rate. It contains several snapshots of the servers.
  std::chrono::seconds window{20};
  /// How many measurements of one number of workers are needed, and how many are kept. Their median
  /// counts.
  uint64_t measurements_min = 2;
  uint64_t measurements_max = 12;
  /// Older measurements say nothing, because the data, the model and the machine's other work have
  /// changed.
  std::chrono::seconds measurement_age_max{3600};
  /// Another worker pays if it adds this share of what one worker adds on average now. DLRover
  /// stops at 0.2. A worker that adds less than a third mostly heats the machine.
  double add_min = 0.3;
  /// While the backlog of a topic grows by this share of the rate, a worker pays earlier: half way
  /// between remove_max and add_min.
  double behind_min = 0.05;
  /// The last worker is removed if it adds less than this. It is far from add_min, so that noise
  /// does not remove a worker and add it again.
  double remove_max = 0.05;
  /// The largest change at once, because the model is not reliable far from measured numbers.
  uint32_t step_max = 2;
  /// A fit with a larger error is ignored.
  double fit_error_max = 0.15;
  /// The job must have this much time left, because a new worker needs time to start, and at the
  /// end all workers wait.
  std::chrono::seconds remaining_min{120};
  /// A share of a worker's time. If it waits this long for shards, it has none to do. If it waits
  /// this long for servers, it does not limit the job.
  double only_waits = 0.8;
  /// The average share of the workers' time. If they wait this long for shards of a topic, they
  /// keep up with the topic.
  double keeps_up = 0.2;
  /// If workers keep up, so many are kept that each is busy for this share. It is far from 1 -
  /// keeps_up, for the same reason as above.
  double busy = 0.6;
  /// One more worker is tried if the machine has this share of what a worker uses as idle cores.
  double spare_cpus = 0.7;
};

struct NoRoomOptions {
  /// How long workers wait for a place in the cluster before fewer are wanted. An autoscaler needs
  /// some minutes to add a machine, and adds it only for pods that wait.
  std::chrono::seconds hold{300};
  /// How long a node waits if it asks for more than it had. It is shorter, because the whole job
  /// waits for a server.
  std::chrono::seconds request_hold{60};
  /// After this time, as many workers as before are tried again. It doubles each time.
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
