// spec.scaler of the table of fields.
#include "cli/job_file/field_builder.h"

namespace muster::job_file {
namespace {

constexpr OnResume kAny = OnResume::kMayChange;
using Memory = ScalerSpec::Memory;
using Straggler = ScalerSpec::Straggler;
using Hang = ScalerSpec::Hang;
using WorkerCount = ScalerSpec::WorkerCount;

Field WholeSeconds(Field field) {
  field.whole_seconds = true;
  return field;
}

void AddWhole(const std::string& name, Range range, Find target, std::string text,
              std::vector<Field>* fields) {
  fields->push_back(
      Make("spec.scaler." + name, Form::kWhole, range, kAny, std::move(target), std::move(text)));
}

/// The range is in thousandths.
void AddNumber(const std::string& name, Range range, Find target, std::string text,
               std::vector<Field>* fields) {
  fields->push_back(
      Make("spec.scaler." + name, Form::kNumber, range, kAny, std::move(target), std::move(text)));
}

void AddSeconds(const std::string& name, Range range, Find target, std::string text,
                std::vector<Field>* fields) {
  fields->push_back(WholeSeconds(Make("spec.scaler." + name, Form::kDuration, range, kAny,
                                      std::move(target), std::move(text))));
}

template <typename T>
Find OfMemory(T Memory::* member) {
  return Scaler([member](ScalerSpec* scaler) { return &(scaler->memory.*member); });
}

template <typename T>
Find OfHang(T Hang::* member) {
  return Scaler([member](ScalerSpec* scaler) { return &(scaler->hang.*member); });
}

template <typename T>
Find OfWorkerCount(T WorkerCount::* member) {
  return Scaler([member](ScalerSpec* scaler) { return &(scaler->worker_count.*member); });
}

void AddGeneral(std::vector<Field>* fields) {
  AddWhole("port", {0, 65'535}, Job(&JobSpec::scaler, &ScalerSpec::port),
           "Of the REST interface and the dashboard, on 127.0.0.1; 0 is a free one.", fields);
  fields->push_back(Make("spec.scaler.dryRun", Form::kBool, {}, kAny,
                         Job(&JobSpec::scaler, &ScalerSpec::dry_run),
                         "Policies decide and say so, and nothing is done."));
  Field paused = Choice(
      Make("spec.scaler.pausedPolicies", Form::kChoices, {}, kAny,
           Job(&JobSpec::scaler, &ScalerSpec::paused_policies),
           "Policies that do nothing from the beginning of a run on."),
      {"crash-loop", "out-of-memory", "platform-kill", "initial-resources",
       "predicted-out-of-memory", "hang", "server-straggler", "worker-straggler", "worker-count"});
  paused.form = Form::kChoices;
  paused.max = paused.choices.size();
  fields->push_back(std::move(paused));
  AddSeconds("cooldown", {kSecond, kHour}, Job(&JobSpec::scaler, &ScalerSpec::cooldown),
             "From one action of a policy on a node to the next of the same kind.", fields);
  AddWhole("interventionsPerHour", {0, 1000},
           Job(&JobSpec::scaler, &ScalerSpec::interventions_per_hour),
           "Of the whole job, at most; what is down is started again all the same.", fields);
}

void AddMemory(std::vector<Field>* fields) {
  AddNumber("outOfMemory.factor", {1'100, 10'000}, OfMemory(&Memory::factor),
            "The new limit after a kill, in terms of the old one or of the peak.", fields);
  AddNumber("predictedOutOfMemory.factor", {1'100, 10'000}, OfMemory(&Memory::predicted_factor),
            "The new limit before a kill, in terms of the old one.", fields);
  AddNumber("predictedOutOfMemory.usageMin", {300, 950}, OfMemory(&Memory::predicted_usage_min),
            "Below this share of the limit nothing is predicted.", fields);
  AddSeconds("predictedOutOfMemory.horizon", {10 * kSecond, 10 * kMinute},
             OfMemory(&Memory::predicted_horizon),
             "The limit is raised when usage would reach it within this time.", fields);
  AddNumber("initialResources.margin", {1'000, 10'000}, OfMemory(&Memory::initial_margin),
            "Where the job names no resources: memory in terms of the peak of earlier runs; of the "
            "request, where it names nothing else.",
            fields);
  AddNumber(
      "initialResources.machineShare", {100, 1'000}, OfMemory(&Memory::initial_machine_share),
      "And where there is no earlier run: of this share of the machine's memory, half is handed "
      "out evenly.",
      fields);
}

void AddStraggler(const std::string& name, Straggler ScalerSpec::* which, const std::string& work,
                  std::vector<Field>* fields) {
  const auto of = [which](auto member) {
    return Scaler([which, member](ScalerSpec* scaler) { return &(scaler->*which.*member); });
  };
  AddNumber(name + ".slowRatio", {1'200, 100'000}, of(&Straggler::slow_ratio),
            "Slow: so many times what its peers take for " + work + ".", fields);
  AddSeconds(name + ".window", {5 * kSecond, 2 * kMinute}, of(&Straggler::window),
             "What that is measured over.", fields);
  AddSeconds(name + ".hold", {0, 10 * kMinute}, of(&Straggler::hold),
             "How long it must be slow without a break, beyond the window.", fields);
  AddWhole(name + ".relaunchesMax", {0, 100}, of(&Straggler::relaunches_max),
           "Relaunches of one node that did not help; then it is left alone for 10 minutes.",
           fields);
}

void AddHangAndCount(std::vector<Field>* fields) {
  AddSeconds("hang.timeout", {10 * kSecond, 24 * kHour}, OfHang(&Hang::timeout),
             "Without a minibatch for so long, and 3 times its longest, a worker hangs; 3 times as "
             "long where no other makes progress.",
             fields);
  AddSeconds("hang.firstTimeout", {10 * kSecond, 24 * kHour}, OfHang(&Hang::first_timeout),
             "The same before its first minibatch; at least `timeout`.", fields);
  AddNumber("workerCount.addMin", {50, 1'000}, OfWorkerCount(&WorkerCount::add_min),
            "Another worker pays when it brings this share of what one brings on the average.",
            fields);
  AddNumber("workerCount.removeMax", {0, 500}, OfWorkerCount(&WorkerCount::remove_max),
            "The last worker goes when it brings less; less than `addMin`.", fields);
  AddWhole("workerCount.stepMax", {1, 100}, OfWorkerCount(&WorkerCount::step_max),
           "Workers that come or go at once.", fields);
  AddSeconds("workerCount.window", {5 * kSecond, 10 * kMinute}, OfWorkerCount(&WorkerCount::window),
             "One measurement of the rate.", fields);
  AddSeconds("workerCount.remainingMin", {0, 24 * kHour},
             OfWorkerCount(&WorkerCount::remaining_min),
             "With less time left the number stays as it is.", fields);
}

}  // namespace

void AddScalerFields(std::vector<Field>* fields) {
  AddGeneral(fields);
  AddMemory(fields);
  AddStraggler("workerStraggler", &ScalerSpec::worker_straggler, "a minibatch", fields);
  AddStraggler("serverStraggler", &ScalerSpec::server_straggler, "a request", fields);
  AddHangAndCount(fields);
}

}  // namespace muster::job_file
