#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "job/file/job_fields.h"

/// Helpers for the table of fields. Only the sources of that table include them.
namespace muster::job_file {

using Find = std::function<Target(const FieldScope&)>;

inline constexpr uint64_t kMs = 1;
inline constexpr uint64_t kSecond = 1000 * kMs;
inline constexpr uint64_t kMinute = 60 * kSecond;
inline constexpr uint64_t kHour = 60 * kMinute;
inline constexpr uint64_t kMi = uint64_t{1} << 20;
inline constexpr uint64_t kTi = uint64_t{1} << 40;

struct Range {
  uint64_t min = 0;
  uint64_t max = 0;
};

inline Field Make(std::string path, Form form, Range range, OnResume on_resume, Find target,
                  std::string text) {
  Field field;
  field.path = std::move(path);
  field.form = form;
  field.min = range.min;
  field.max = range.max;
  field.on_resume = on_resume;
  field.target = std::move(target);
  field.text = std::move(text);
  return field;
}

inline Field Required(Field field) {
  field.required = true;
  return field;
}

inline Field Choice(Field field, std::vector<std::string> choices) {
  field.form = Form::kChoice;
  field.choices = std::move(choices);
  return field;
}

inline Field Default(Field field, std::string text) {
  field.default_text = std::move(text);
  return field;
}

/// Targets in JobSpec, in one of its groups, or in the current dataset.
template <typename T>
Find Job(T JobSpec::* member) {
  return [member](const FieldScope& scope) -> Target { return &(scope.job->*member); };
}
template <typename Group, typename T>
Find Job(Group JobSpec::* group, T Group::* member) {
  return
      [group, member](const FieldScope& scope) -> Target { return &(scope.job->*group.*member); };
}
template <typename T>
Find Dataset(T DatasetSpec::* member) {
  return [member](const FieldScope& scope) -> Target { return &(scope.dataset->spec.*member); };
}
template <typename T>
Find Lines(T LinesSpec::* member) {
  return [member](const FieldScope& scope) -> Target { return &(scope.dataset->lines.*member); };
}
template <typename T>
Find Resource(ReplicaSpec JobSpec::* role, ResourceSpec ReplicaSpec::* which,
              T ResourceSpec::* member) {
  return [role, which, member](const FieldScope& scope) -> Target {
    return &(scope.job->*role.*which.*member);
  };
}
inline Target Unused(const FieldScope& scope) {
  return scope.unused;
}

/// spec.datasets[].kafka.
void AddKafkaFields(std::vector<Field>* fields);
/// The addresses of master and servers.
void AddAddressFields(std::vector<Field>* fields);
/// spec.snapshots.s3.
void AddS3Fields(std::vector<Field>* fields);
/// spec.kubernetes.
void AddKubernetesFields(std::vector<Field>* fields);
/// spec.group.
void AddGroupFields(std::vector<Field>* fields);
/// spec.scaler.
void AddScalerFields(std::vector<Field>* fields);
/// spec.training and spec.restarts.
void AddTrainingFields(std::vector<Field>* fields);

}  // namespace muster::job_file
