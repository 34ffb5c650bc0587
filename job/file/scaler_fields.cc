// spec.scaler of the table of fields.
#include <cmath>
#include <type_traits>

#include "base/check.h"
#include "job/file/field_builder.h"
#include "job/thresholds.h"

namespace muster::job_file {
namespace {

constexpr OnResume kAny = OnResume::kMayChange;

Field InScaler(const std::string& name, Form form, Range range, Find target, std::string text) {
  Field field = Make("spec.scaler." + name, form, range, kAny, std::move(target), std::move(text));
  field.whole_seconds = form == Form::kDuration;
  return field;
}

/// Bounds in thousandths: for a number, or for seconds, whose bounds are in milliseconds.
Range Thousandfold(double min, double max) {
  return {static_cast<uint64_t>(std::llround(min * 1000)),
          static_cast<uint64_t>(std::llround(max * 1000))};
}

Field FieldOf(const Threshold& threshold) {
  const auto& [path, min, max, text] = threshold.file;
  const Find target = [place = threshold.place](const FieldScope& scope) {
    return std::visit(
        [](auto* value) -> Target {
          if constexpr (std::is_constructible_v<Target, decltype(value)>) {
            return value;
          } else {
            MUSTER_CHECK_MSG(false, "no form of the job file is made for it");
            return Target();
          }
        },
        place(&scope.job->scaler.policies));
  };
  PolicyOptions any;
  const Threshold::Place place = threshold.place(&any);
  if (std::holds_alternative<double*>(place)) {
    return InScaler(path, Form::kNumber, Thousandfold(min, max), target, text);
  }
  if (std::holds_alternative<std::chrono::seconds*>(place)) {
    return InScaler(path, Form::kDuration, Thousandfold(min, max), target, text);
  }
  return InScaler(path, Form::kWhole, {static_cast<uint64_t>(min), static_cast<uint64_t>(max)},
                  target, text);
}

void AddGeneral(std::vector<Field>* fields) {
  fields->push_back(InScaler("host", Form::kHost, {}, Job(&JobSpec::scaler, &ScalerSpec::host),
                             "Host at which the REST interface and the dashboard listen."));
  fields->push_back(
      Default(InScaler("advertise", Form::kHost, {}, Job(&JobSpec::scaler, &ScalerSpec::advertise),
                       "Host by which browsers and programs reach them; requests may name it."),
              "`host`"));
  fields->push_back(InScaler("port", Form::kWhole, {0, 65'535},
                             Job(&JobSpec::scaler, &ScalerSpec::port),
                             "Port of the REST interface and the dashboard. 0 means a free port."));
  fields->push_back(
      InScaler("dryRun", Form::kBool, {}, Job(&JobSpec::scaler, &ScalerSpec::dry_run),
               "If true, policies decide and report their decisions, but do nothing."));
  Field paused = InScaler("pausedPolicies", Form::kChoices, {},
                          Job(&JobSpec::scaler, &ScalerSpec::paused_policies),
                          "Policies that are paused when a run begins.");
  for (const KnownPolicy& policy : KnownPolicies()) paused.choices.emplace_back(policy.name);
  paused.max = paused.choices.size();
  fields->push_back(std::move(paused));
  fields->push_back(InScaler(
      "cooldown", Form::kDuration, {kSecond, kHour}, Job(&JobSpec::scaler, &ScalerSpec::cooldown),
      "Shortest time between two actions of the same kind by a policy on one node."));
  fields->push_back(
      InScaler("interventionsPerHour", Form::kWhole, {0, 1000},
               Job(&JobSpec::scaler, &ScalerSpec::interventions_per_hour),
               "Most actions of the policies per hour in the whole job. A node that is down is "
               "restarted even beyond this bound."));
}

}  // namespace

void AddScalerFields(std::vector<Field>* fields) {
  AddGeneral(fields);
  for (const Threshold& threshold : Thresholds()) {
    if (!threshold.file.path.empty()) fields->push_back(FieldOf(threshold));
  }
}

}  // namespace muster::job_file
