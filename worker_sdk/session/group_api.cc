// The classes of include/muster/group.h, in terms of the implementation.
#include <memory>
#include <utility>

#include "muster/group.h"
#include "worker_sdk/session/group_impl.h"
#include "worker_sdk/session/group_step.h"
#include "worker_sdk/session/public_status.h"

namespace muster {
namespace {

template <typename T>
std::span<std::byte> MemoryOf(std::span<T> values) {
  return std::as_writable_bytes(values);
}

}  // namespace

Result<Group> Session::Group() {
  const absl::Status may = impl_->MayHaveGroup();
  if (!may.ok()) return internal::ToPublic(may);
  return muster::Group(std::make_unique<internal::GroupImpl>(impl_.get()));
}

Group::Group(std::unique_ptr<internal::GroupImpl> impl) : impl_(std::move(impl)) {}
Group::Group(Group&&) noexcept = default;
Group& Group::operator=(Group&&) noexcept = default;
Group::~Group() = default;

SumBucket Group::AddBucket(std::string_view name, uint64_t elements, SumOptions options) {
  return {impl_->AddBucket(name, elements, options), elements};
}
void Group::AddState(std::string_view name, std::span<float> values) {
  impl_->AddState(name, GroupDtype::kFloat32, values.size(), MemoryOf(values));
}
void Group::AddState(std::string_view name, std::span<double> values) {
  impl_->AddState(name, GroupDtype::kFloat64, values.size(), MemoryOf(values));
}
void Group::AddState(std::string_view name, std::span<int64_t> values) {
  impl_->AddState(name, GroupDtype::kInt64, values.size(), MemoryOf(values));
}
void Group::AddState(std::string_view name, std::span<std::byte> values) {
  impl_->AddState(name, GroupDtype::kBytes, values.size(), MemoryOf(values));
}
std::optional<GroupStep> Group::NextStep() {
  std::unique_ptr<internal::GroupStepImpl> step = impl_->NextStep();
  if (step == nullptr) return std::nullopt;
  return GroupStep(std::move(step));
}
bool Group::HasFinalState() const {
  return impl_->HasFinalState();
}
Status Group::status() const {
  return internal::ToPublic(impl_->status());
}

GroupStep::GroupStep(std::unique_ptr<internal::GroupStepImpl> impl) : impl_(std::move(impl)) {}
GroupStep::GroupStep(GroupStep&&) noexcept = default;
GroupStep& GroupStep::operator=(GroupStep&&) noexcept = default;
GroupStep::~GroupStep() = default;

uint64_t GroupStep::step() const {
  return impl_->step();
}
uint32_t GroupStep::epoch() const {
  return impl_->epoch();
}
bool GroupStep::evaluate() const {
  return impl_->evaluate();
}
uint64_t GroupStep::records() const {
  return impl_->records();
}
MinibatchRange GroupStep::Minibatches(Prepare prepare) {
  return {impl_->shard(), std::move(prepare)};
}
void GroupStep::Add(const SumBucket& bucket, std::span<const float> gradient) {
  impl_->Add(bucket.index_, gradient);
}
bool GroupStep::Commit(const std::function<void()>& apply) {
  return impl_->Commit(apply);
}
std::span<const float> GroupStep::Sum(const SumBucket& bucket) const {
  return impl_->Sum(bucket.index_);
}
void GroupStep::Fail(std::string_view reason) {
  impl_->Fail(reason);
}

}  // namespace muster
