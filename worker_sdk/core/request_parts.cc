#include "worker_sdk/core/request_parts.h"

#include <span>

namespace muster::sdk {

void WireParts(const SendRequest& request, wire::Parts* parts) {
  const RowPlan& plan = request.batch->plan;
  parts->Clear();
  parts->Reserve(request.items.size(), plan.groups.size());
  size_t version = 0;
  for (const SendRequest::Item& item : request.items) {
    const PlanPart& part = plan.parts[item.part];
    parts->Add(part.partition.value(), item.epoch.value());
    for (const PlanGroup& group :
         std::span(plan.groups).subspan(part.group_begin, part.group_count)) {
      const bool versioned = group.dense && !request.push.has_value();
      parts->AddGroup({.table = group.table.value(),
                       .keys = group.keys,
                       .version = versioned ? request.versions[version++] : wire::kUnversioned});
    }
  }
}

wire::PushIdentity WireIdentity(const PushIdentity& push) {
  return {.dataset = push.shard.dataset.value(),
          .epoch = push.shard.epoch.value(),
          .shard_index = push.shard.index.value(),
          .minibatch = push.minibatch.value(),
          .run = push.run.value(),
          .token = push.token.value(),
          .step = push.step};
}

}  // namespace muster::sdk
