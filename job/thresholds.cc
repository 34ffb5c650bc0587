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

/// Of one policy, `kPolicy` of PolicyOptions.
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
                 "The new limit after a kill, in terms of the old one or of the peak."});
  memory.Add<&Memory::gain_min>("gain_min");
  memory.Add<&Memory::raised_already>("raised_already");
}

void AddPredictedOutOfMemory(std::vector<Threshold>* all) {
  using Options = PredictedOutOfMemoryOptions;
  Rows<&PolicyOptions::predicted_out_of_memory> rows("predicted-out-of-memory", all);
  rows.Add<&Options::factor>("factor", {"predictedOutOfMemory.factor", 1.1, 10,
                                        "The new limit before a kill, in terms of the old one."});
  rows.Add<&Options::usage_min>("usage_min_of_limit",
                                {"predictedOutOfMemory.usageMin", 0.3, 0.95,
                                 "Below this share of the limit nothing is predicted."});
  rows.Add<&Options::horizon>("horizon_s",
                              {"predictedOutOfMemory.horizon", 10, 10 * kMinute,
                               "The limit is raised when usage would reach it within this time."});
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
       "Where the job names no resources: memory in terms of the peak of earlier runs; of the "
       "request, where it names nothing else."});
  rows.Add<&Options::machine_share>(
      "machine_share",
      {"initialResources.machineShare", 0.1, 1,
       "And where there is no earlier run: of this share of the machine's memory, half is handed "
       "out evenly."});
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
      {path + ".slowRatio", 1.2, 100, "Slow: so many times what its peers take for " + work + "."});
  rows.template Add<&Options::window>(
      "window_s", {path + ".window", 5, 2 * kMinute, "What that is measured over."});
  rows.template Add<&Options::hold>(
      "hold_s", {path + ".hold", 0, 10 * kMinute,
                 "How long it must be slow without a break, beyond the window."});
  rows.template Add<&Options::restarts_max>(
      "restarts_max",
      {path + ".restartsMax", 0, 100,
       "Restarts of one node that did not help; then it is left alone for 10 minutes."});
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
       "Without a minibatch for so long, and 3 times its longest, a worker hangs; 3 times as "
       "long where no other makes progress."});
  rows.Add<&Options::first_silence_min>(
      "first_silence_min_s",
      {"hang.firstTimeout", 10, kDay, "The same before its first minibatch; at least `timeout`."});
  rows.Add<&Options::times_longest>("times_longest");
  rows.Add<&Options::looping_cpus>("looping_cores");
  rows.Add<&Options::alone_factor>("alone_factor");
  rows.Add<&Options::dump_grace>("dump_grace_s");
}

void AddWorkerCount(std::vector<Threshold>* all) {
  using Options = WorkerCountOptions;
  Rows<&PolicyOptions::worker_count> rows("worker-count", all);
  rows.Add<&Options::add_min>(
      "add_min_of_average",
      {"workerCount.addMin", 0.05, 1,
       "Another worker pays when it brings this share of what one brings on the average."});
  rows.Add<&Options::remove_max>("remove_max_of_average",
                                 {"workerCount.removeMax", 0, 0.5,
                                  "The last worker goes when it brings less; less than `addMin`."});
  rows.Add<&Options::step_max>("step_max_workers",
                               {"workerCount.stepMax", 1, 100, "Workers that come or go at once."});
  rows.Add<&Options::window>(
      "window_s", {"workerCount.window", 5, 10 * kMinute, "One measurement of the rate."});
  rows.Add<&Options::remaining_min>(
      "remaining_min_s",
      {"workerCount.remainingMin", 0, kDay, "With less time left the number stays as it is."});
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
       "Starts again what its own program ended; ends the job with the reason when nothing else "
       "happens"},
      {"out-of-memory",
       "Starts what was killed at its memory limit again with more; ends the job with the reason "
       "where no more may be had"},
      {"platform-kill", "Starts what was killed from outside again at the same size, uncharged"},
      {"initial-resources",
       "Gives nodes for which the job file names nothing what earlier runs needed, else an even "
       "share of the memory"},
      {"predicted-out-of-memory",
       "Raises in place the memory limit of a node that would soon be killed at it", true},
      {"hang",
       "Writes the stacks of a worker that makes no progress into its log, then starts it again",
       true},
      {"server-straggler",
       "Gives a server that answers slower than its peers more CPU, or starts it again", true},
      {"worker-straggler",
       "Gives a worker that computes slower than its peers more CPU, or starts it again", true},
      {"worker-count", "Adds workers while another one pays, removes those that bring nothing",
       true},
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
