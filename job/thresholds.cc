#include "job/thresholds.h"

#include <utility>

namespace muster {
namespace {

constexpr double kMinute = 60;
constexpr double kHour = 60 * kMinute;
constexpr double kDay = 24 * kHour;

template <auto kPolicy, auto kMember>
Threshold::Place PlaceIn(PolicyOptions* options) {
  return &(options->*kPolicy.*kMember);
}

/// A threshold of the policy whose options are `kPolicy` of PolicyOptions.
template <auto kPolicy>
class Rows {
 public:
  Rows(std::string_view policy, std::vector<Threshold>* all) : policy_(policy), all_(all) {}
  template <auto kMember>
  void Add(std::string_view shown, Threshold::InFile file = {}) {
    all_->push_back({policy_, shown, std::move(file), PlaceIn<kPolicy, kMember>});
  }

 private:
  std::string_view policy_;
  std::vector<Threshold>* all_;
};

void AddRepairs(std::vector<Threshold>* all) {
  Rows<&PolicyOptions::crash_loop>("crash-loop", all).Add<&CrashLoopOptions::ends_max>("ends_max");
  using Memory = OutOfMemoryOptions;
  Rows<&PolicyOptions::out_of_memory> memory("out-of-memory", all);
  memory.Add<&Memory::factor>(
      "factor", {"outOfMemory.factor", 1.1, 10,
                 "After a kill, the new limit is the old limit or the peak, times this factor."});
  memory.Add<&Memory::gain_min>("gain_min");
  memory.Add<&Memory::raised_already>("raised_already");
}

void AddPredictedOutOfMemory(std::vector<Threshold>* all) {
  using Options = PredictedOutOfMemoryOptions;
  Rows<&PolicyOptions::predicted_out_of_memory> rows("predicted-out-of-memory", all);
  rows.Add<&Options::factor>("factor",
                             {"predictedOutOfMemory.factor", 1.1, 10,
                              "Before a kill, the new limit is the old limit times this factor."});
  rows.Add<&Options::usage_min>(
      "usage_min_of_limit",
      {"predictedOutOfMemory.usageMin", 0.3, 0.95,
       "If a node uses less than this share of its limit, nothing is predicted."});
  rows.Add<&Options::horizon>(
      "horizon_s", {"predictedOutOfMemory.horizon", 10, 10 * kMinute,
                    "If usage would reach the limit within this time, the limit is raised."});
  rows.Add<&Options::window>("window_s");
  rows.Add<&Options::settle>("settle_s");
  rows.Add<&Options::points_min>("points_min_readings");
  rows.Add<&Options::span_min>("span_min_s");
  rows.Add<&Options::concordance_min>("concordance_min");
  rows.Add<&Options::growth_to_noise_min>("growth_to_noise_min");
  rows.Add<&Options::growth_of_limit_min>("growth_min_of_limit");
  rows.Add<&Options::new_high>("new_high");
  rows.Add<&Options::confirmations>("confirmations_readings");
  rows.Add<&Options::gain_min>("gain_min");
}

void AddInitialResources(std::vector<Threshold>* all) {
  using Options = InitialResourcesOptions;
  Rows<&PolicyOptions::initial_resources> rows("initial-resources", all);
  rows.Add<&Options::memory_margin>(
      "memory_margin",
      {"initialResources.margin", 1, 10,
       "If the job names no resources, the limit of memory is the peak of earlier runs times this "
       "factor. If it names only a request, the limit is the request times this factor."});
  rows.Add<&Options::machine_share>(
      "machine_share",
      {"initialResources.machineShare", 0.1, 1,
       "If the job names no resources and there is no earlier run, all nodes together get half of "
       "this share of the machine's memory, in even parts."});
  rows.Add<&Options::cpu_margin>("cpu_margin");
  rows.Add<&Options::cpus_min>("cpus_min_cores");
}

template <auto kPolicy>
void AddStraggler(std::string_view policy, const std::string& path, const std::string& work,
                  std::vector<Threshold>* all) {
  using Options = StragglerOptions;
  Rows<kPolicy> rows(policy, all);
  rows.template Add<&Options::slow_ratio>(
      "slow_ratio",
      {path + ".slowRatio", 1.2, 100,
       "A node is slow if it takes this many times as long for " + work + " as its peers."});
  rows.template Add<&Options::window>(
      "window_s", {path + ".window", 5, 2 * kMinute, "Time over which slowness is measured."});
  rows.template Add<&Options::hold>(
      "hold_s", {path + ".hold", 0, 10 * kMinute,
                 "How long a node must be slow without a break, in addition to the window."});
  rows.template Add<&Options::restarts_max>(
      "restarts_max",
      {path + ".restartsMax", 0, 100,
       "After this many restarts that did not help, the policy leaves the node alone for 10 "
       "minutes."});
  rows.template Add<&Options::window_max>("window_max_s");
  rows.template Add<&Options::work_min>("work_min_units");
  rows.template Add<&Options::settle>("settle_s");
  rows.template Add<&Options::clear_ratio>("clear_ratio");
  rows.template Add<&Options::alone_ratio>("alone_ratio");
  rows.template Add<&Options::excess_min>("excess_min_us");
  rows.template Add<&Options::history_min>("history_min_windows");
  rows.template Add<&Options::history_max>("history_max_windows");
  rows.template Add<&Options::throttled_min>("throttled_min_of_time");
  rows.template Add<&Options::cpu_factor>("cpu_factor");
  rows.template Add<&Options::cpu_gain_min>("cpu_gain_min");
  rows.template Add<&Options::foreign_quota>("foreign_quota_of_limit");
  rows.template Add<&Options::grace>("grace_s");
  rows.template Add<&Options::forgive>("forgive_s");
}

void AddHang(std::vector<Threshold>* all) {
  using Options = HangOptions;
  Rows<&PolicyOptions::hang> rows("hang", all);
  rows.Add<&Options::silence_min>(
      "silence_min_s",
      {"hang.timeout", 10, kDay,
       "A worker hangs if it finishes no minibatch for this long and for 3 times its longest "
       "minibatch. If no other worker makes progress, both times are 3 times as long."});
  rows.Add<&Options::first_silence_min>(
      "first_silence_min_s",
      {"hang.firstTimeout", 10, kDay,
       "The same time before a worker's first minibatch; at least `timeout`."});
  rows.Add<&Options::times_longest>("times_longest");
  rows.Add<&Options::looping_cpus>("looping_cores");
  rows.Add<&Options::alone_factor>("alone_factor");
  rows.Add<&Options::dump_grace>("dump_grace_s");
}

void AddNoRoom(std::vector<Threshold>* all) {
  using Options = NoRoomOptions;
  Rows<&PolicyOptions::no_room> rows("no-room", all);
  rows.Add<&Options::hold>(
      "hold_s", {"noRoom.hold", 0, kDay,
                 "If workers wait for a place in the cluster for this long, fewer are wanted."});
  rows.Add<&Options::request_hold>("request_hold_s",
                                   {"noRoom.requestHold", 0, kDay,
                                    "If a node with more memory or CPU than before waits for a "
                                    "place for this long, it gets what "
                                    "it had before."});
  rows.Add<&Options::retry>(
      "retry_s", {"noRoom.retry", 10, kDay,
                  "After this time, as many workers as before are tried again; twice as long each "
                  "time, up to an hour."});
  rows.Add<&Options::retry_max>("retry_max_s");
}

void AddWorkerCount(std::vector<Threshold>* all) {
  using Options = WorkerCountOptions;
  Rows<&PolicyOptions::worker_count> rows("worker-count", all);
  rows.Add<&Options::add_min>(
      "add_min_of_average",
      {"workerCount.addMin", 0.05, 1,
       "A worker is added if it would bring at least this share of what a worker brings on "
       "average."});
  rows.Add<&Options::remove_max>("remove_max_of_average",
                                 {"workerCount.removeMax", 0, 0.5,
                                  "The last worker is removed if it brings less than this share. "
                                  "Less than `addMin`."});
  rows.Add<&Options::step_max>(
      "step_max_workers",
      {"workerCount.stepMax", 1, 100, "Most workers that are added or removed at once."});
  rows.Add<&Options::window>("window_s", {"workerCount.window", 5, 10 * kMinute,
                                          "Length of one measurement of the rate."});
  rows.Add<&Options::remaining_min>(
      "remaining_min_s",
      {"workerCount.remainingMin", 0, kDay,
       "If the job has less time left than this, the number of workers does not change."});
  rows.Add<&Options::settle>("settle_s");
  rows.Add<&Options::measurements_min>("measurements_min");
  rows.Add<&Options::measurements_max>("measurements_max");
  rows.Add<&Options::measurement_age_max>("measurement_age_max_s");
  rows.Add<&Options::behind_min>("behind_min_of_rate");
  rows.Add<&Options::keeps_up>("keeps_up_waits_of_time");
  rows.Add<&Options::busy>("busy_of_time");
  rows.Add<&Options::fit_error_max>("fit_error_max");
  rows.Add<&Options::only_waits>("only_waits_of_time");
  rows.Add<&Options::spare_cpus>("spare_of_worker");
}

}  // namespace

std::span<const KnownPolicy> KnownPolicies() {
  static constexpr KnownPolicy kPolicies[] = {
      {"crash-loop",
       "Restarts a node that its own program ended; ends the job with the reason if a node "
       "keeps ending without progress"},
      {"out-of-memory",
       "Restarts a node that was killed at its memory limit with more memory; ends the job with "
       "the reason if there is no more memory"},
      {"platform-kill",
       "Restarts a node that was killed from outside, at the same size; the kill does not count as "
       "a crash"},
      {"initial-resources",
       "If the job file names no resources for a node, gives it the memory that earlier runs "
       "needed, or an even share of the memory"},
      {"predicted-out-of-memory",
       "Raises a node's memory limit in place before the node is killed at the limit", true},
      {"hang", "If a worker makes no progress, writes its stacks into its log and restarts it",
       true},
      {"server-straggler",
       "If a server answers more slowly than its peers, gives it more CPU or restarts it", true},
      {"worker-straggler",
       "If a worker computes more slowly than its peers, gives it more CPU or restarts it", true},
      {"no-room",
       "If a cluster has no room for a node, gives it what it had before, or wants fewer workers "
       "for a while",
       true},
      {"worker-count",
       "Adds workers while that makes the job faster, removes workers that add nothing", true},
  };
  return kPolicies;
}

const std::vector<Threshold>& Thresholds() {
  static const std::vector<Threshold>* const kAll = [] {
    auto* all = new std::vector<Threshold>();
    AddRepairs(all);
    AddPredictedOutOfMemory(all);
    AddInitialResources(all);
    AddStraggler<&PolicyOptions::worker_straggler>("worker-straggler", "workerStraggler",
                                                   "a minibatch", all);
    AddStraggler<&PolicyOptions::server_straggler>("server-straggler", "serverStraggler",
                                                   "a request", all);
    AddHang(all);
    AddNoRoom(all);
    AddWorkerCount(all);
    return all;
  }();
  return *kAll;
}

double ValueAt(const Threshold::Place& place) {
  return std::visit(
      [](const auto* value) {
        if constexpr (requires { value->count(); }) {
          return static_cast<double>(value->count());
        } else {
          return static_cast<double>(*value);
        }
      },
      place);
}

}  // namespace muster
