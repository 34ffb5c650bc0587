// spec.kubernetes of the table of fields.
#include "job/file/field_builder.h"
#include "job/file/scalars.h"

namespace muster::job_file {
namespace {

void AddVolume(const std::string& name, KubernetesSpec::Volume KubernetesSpec::* which,
               const std::string& what, std::vector<Field>* fields) {
  using Volume = KubernetesSpec::Volume;
  const std::string in = "spec.kubernetes." + name + ".";
  const auto target = [which](auto Volume::* member) -> Find {
    return [which, member](const FieldScope& scope) -> Target {
      return &(scope.job->kubernetes.*which.*member);
    };
  };
  const KubernetesSpec defaults;
  fields->push_back(
      Default(Make(in + "size", Form::kMemory, {64 * kMi, 1024 * kTi}, OnResume::kMayChange,
                   target(&Volume::size_bytes), "Size of the volume for " + what),
              FormatMemory((defaults.*which).size_bytes)));
  fields->push_back(Default(Make(in + "storageClass", Form::kText, {}, OnResume::kMayChange,
                                 target(&Volume::storage_class), "Storage class of that volume."),
                            "the cluster's"));
  fields->push_back(
      Default(Make(in + "claim", Form::kText, {}, OnResume::kMayChange, target(&Volume::claim),
                   "An existing PersistentVolumeClaim to use instead. Muster then makes none."),
              "none"));
}

void AddTemplate(const std::string& name, std::string KubernetesSpec::PodTemplates::* which,
                 std::string text, std::vector<Field>* fields) {
  constexpr uint64_t kBytesMax = 64 * 1024;
  fields->push_back(Default(Make(
                                "spec.kubernetes.podTemplates." + name, Form::kFragment,
                                {0, kBytesMax}, OnResume::kMayChange,
                                [which](const FieldScope& scope) -> Target {
                                  return &(scope.job->kubernetes.pod_templates.*which);
                                },
                                std::move(text)),
                            "none"));
}

}  // namespace

void AddKubernetesFields(std::vector<Field>* fields) {
  using Templates = KubernetesSpec::PodTemplates;
  fields->push_back(
      Default(Make("spec.kubernetes.image", Form::kText, {}, OnResume::kMayChange,
                   Job(&JobSpec::kubernetes, &KubernetesSpec::image),
                   "Image of every pod. It contains `muster` and, for workers, the trainer."),
              "`--image`"));
  fields->push_back(Default(
      Make("spec.kubernetes.namespace", Form::kName, {}, OnResume::kMayChange,
           Job(&JobSpec::kubernetes, &KubernetesSpec::ns), "Namespace of all objects of the job."),
      "`--namespace`"));
  AddVolume("state", &KubernetesSpec::state, "the state directory: journal, logs, plan.", fields);
  AddVolume("snapshots", &KubernetesSpec::snapshots,
            "snapshots, which the master and all servers share (ReadWriteMany). Not made if "
            "`spec.snapshots.directory` is on S3 or an absolute path.",
            fields);
  AddTemplate("all", &Templates::all,
              "Merged into the template of every pod of the job ([Kubernetes](kubernetes.md)).",
              fields);
  AddTemplate("master", &Templates::master,
              "Merged into the template of the pod of master and scaler, after `all`.", fields);
  AddTemplate("ps", &Templates::ps, "Merged into the template of servers, after `all`.", fields);
  AddTemplate("worker", &Templates::worker, "Merged into the template of workers, after `all`.",
              fields);
}

}  // namespace muster::job_file
