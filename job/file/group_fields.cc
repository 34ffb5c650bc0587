#include "job/file/field_builder.h"

#include "base/words/limits.h"

namespace muster::job_file {

void AddGroupFields(std::vector<Field>* fields) {
  constexpr OnResume kAny = OnResume::kMayChange;
  const std::string in = "spec.group.";
  fields->push_back(Default(
      Make(in + "globalBatch", Form::kWhole, {1, 1u << 30}, OnResume::kFixed,
           Job(&JobSpec::group, &GroupSpec::global_batch),
           "Records of a step. With it, all workers train as one synchronous group: they add their "
           "gradients and make each step together. It must be a multiple of the `minibatchSize` of "
           "every train dataset. The members divide the minibatches of a step among them, so it "
           "stays the same whoever is there. The last step of a file may be smaller."),
      "none: no group"));
  fields->push_back(Make(in + "minMembers", Form::kWhole, {1, most::kMembers}, kAny,
                         Job(&JobSpec::group, &GroupSpec::members_min),
                         "With fewer members, the group waits."));
  fields->push_back(Default(Make(in + "maxMembers", Form::kWhole, {1, most::kMembers}, kAny,
                                 Job(&JobSpec::group, &GroupSpec::members_max),
                                 "Most members. Other workers wait until one leaves."),
                            "`spec.replicaSpecs.worker.maxReplicas`"));
  fields->push_back(Make(in + "silenceLimit", Form::kDuration, {500 * kMs, kHour}, kAny,
                         Job(&JobSpec::group, &GroupSpec::silence_limit),
                         "A member that the master does not hear for this long is no member any "
                         "more. A member that ends is noticed at once."));
  fields->push_back(Make(in + "joinWait", Form::kDuration, {0, kHour}, kAny,
                         Job(&JobSpec::group, &GroupSpec::join_wait),
                         "How long the first step waits for more workers once `minMembers` are "
                         "there. It does not wait if all workers are there."));
  fields->push_back(Make(in + "balance", Form::kBool, {}, kAny,
                         Job(&JobSpec::group, &GroupSpec::balance),
                         "True: a slow member computes fewer minibatches of a step than a fast "
                         "one. The sum of a step is the same."));
}

}  // namespace muster::job_file
