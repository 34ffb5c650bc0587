// The classes of include/muster/group.h and local_sgd.h, in terms of the implementation.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "collectives/backends/nccl_backend.h"
#include "collectives/backends/plugin_backend.h"
#include "muster/group.h"
#include "muster/local_sgd.h"
#include "worker_sdk/member/group_impl.h"
#include "worker_sdk/member/group_step.h"
#include "worker_sdk/member/outer_loop_impl.h"
#include "worker_sdk/session/forked_child.h"
#include "worker_sdk/session/member_session.h"
#include "worker_sdk/session/public_status.h"

namespace muster {
namespace {

template <typename T>
std::span<std::byte> MemoryOf(std::span<T> values) {
  return std::as_writable_bytes(values);
}

/// Nothing for the members' own ring.
absl::StatusOr<std::shared_ptr<collectives::Backend>> Open(const CollectiveOptions& options) {
  using Backend = CollectiveOptions::Backend;
  if (options.backend == Backend::kRing) return nullptr;
  if (options.backend == Backend::kPlugin) {
    if (options.library.empty()) {
      return absl::InvalidArgumentError("CollectiveOptions::library must name the plugin's file");
    }
    return collectives::OpenPlugin(options.library);
  }
  if (options.backend != Backend::kNccl) {
    return absl::InvalidArgumentError(
        fmt::format("CollectiveOptions::backend {} is unknown", static_cast<int>(options.backend)));
  }
  collectives::NcclOptions nccl;
  nccl.device = options.device;
  if (!options.library.empty()) nccl.library = options.library;
  if (!options.driver.empty()) nccl.cuda = options.driver;
  return collectives::OpenNccl(nccl);
}

}  // namespace

Result<Group> Session::Group() {
  return Group(CollectiveOptions());
}

Result<Group> Session::Group(const CollectiveOptions& options) {
  if (internal::InForkedChild()) return internal::ToPublic(internal::ForkedChildError());
  internal::MemberSession& session = internal::MemberSessionOf(*impl_);
  absl::StatusOr<std::unique_ptr<ObjectStore>> store = session.OpenGroupStore();
  if (!store.ok()) return internal::ToPublic(store.status());
  absl::StatusOr<std::shared_ptr<collectives::Backend>> backend = Open(options);
  if (!backend.ok()) return internal::ToPublic(backend.status());
  const absl::Status taken = session.TakeGroup();
  if (!taken.ok()) return internal::ToPublic(taken);
  return muster::Group(
      std::make_unique<internal::GroupImpl>(&session, *std::move(store), *std::move(backend)));
}

Group::Group(std::unique_ptr<internal::GroupImpl> impl) : impl_(std::move(impl)) {}
Group::Group(Group&&) noexcept = default;
Group& Group::operator=(Group&&) noexcept = default;
Group::~Group() {
  if (internal::InForkedChild()) (void)impl_.release();
}

SumBucket Group::AddBucket(std::string_view name, uint64_t elements, SumOptions options) {
  if (internal::InForkedChild()) return {0, elements};
  return {impl_->AddBucket(name, elements, options), elements};
}
void Group::AddState(std::string_view name, std::span<float> values) {
  if (internal::InForkedChild()) return;
  impl_->AddState(name, GroupDtype::kFloat32, values.size(), MemoryOf(values));
}
void Group::AddState(std::string_view name, std::span<double> values) {
  if (internal::InForkedChild()) return;
  impl_->AddState(name, GroupDtype::kFloat64, values.size(), MemoryOf(values));
}
void Group::AddState(std::string_view name, std::span<int64_t> values) {
  if (internal::InForkedChild()) return;
  impl_->AddState(name, GroupDtype::kInt64, values.size(), MemoryOf(values));
}
void Group::AddState(std::string_view name, std::span<std::byte> values) {
  if (internal::InForkedChild()) return;
  impl_->AddState(name, GroupDtype::kBytes, values.size(), MemoryOf(values));
}
std::optional<GroupStep> Group::NextStep() {
  if (internal::InForkedChild()) return std::nullopt;
  if (impl_->trains_locally()) {
    impl_->ProgramError("Group::NextStep of a group of DiLoCo or LocalSgd: use their NextStep");
    return std::nullopt;
  }
  std::unique_ptr<internal::GroupStepImpl> step = impl_->NextStep();
  if (step == nullptr) return std::nullopt;
  return GroupStep(std::move(step));
}
bool Group::HasFinalState() const {
  if (internal::InForkedChild()) return false;
  return impl_->HasFinalState();
}
Status Group::status() const {
  if (internal::InForkedChild()) return internal::ToPublic(internal::ForkedChildError());
  return internal::ToPublic(impl_->status());
}

GroupStep::GroupStep(std::unique_ptr<internal::GroupStepImpl> impl) : impl_(std::move(impl)) {}
GroupStep::GroupStep(GroupStep&&) noexcept = default;
GroupStep& GroupStep::operator=(GroupStep&&) noexcept = default;
GroupStep::~GroupStep() {
  if (internal::InForkedChild()) (void)impl_.release();
}

uint64_t GroupStep::step() const {
  return impl_->step();
}
uint32_t GroupStep::epoch() const {
  return impl_->epoch();
}
bool GroupStep::replay() const {
  return impl_->replay();
}
bool GroupStep::evaluate() const {
  return impl_->evaluate();
}
uint64_t GroupStep::records() const {
  return impl_->records();
}
MinibatchRange GroupStep::Minibatches(Prepare prepare) {
  if (internal::InForkedChild()) return {nullptr, nullptr};
  return {impl_->loop(), std::move(prepare)};
}
void GroupStep::Add(const SumBucket& bucket, std::span<const float> gradient) {
  if (internal::InForkedChild()) return;
  impl_->Add(bucket.index_, gradient);
}
void GroupStep::Put(const SumBucket& bucket, std::span<const float> sum) {
  if (internal::InForkedChild()) return;
  impl_->Put(bucket.index_, sum);
}
bool GroupStep::state_copied() const {
  return impl_->state_copied();
}
void GroupStep::AddDevice(const SumBucket& bucket, const float* gradient, uint64_t elements,
                          void* stream) {
  if (internal::InForkedChild()) return;
  impl_->AddDevice(bucket.index_, gradient, elements, stream);
}
const float* GroupStep::DeviceSum(const SumBucket& bucket) const {
  if (internal::InForkedChild()) return nullptr;
  return impl_->DeviceSum(bucket.index_);
}
bool GroupStep::Commit(const std::function<void()>& apply) {
  return !internal::InForkedChild() && impl_->MayCommit() && impl_->Commit(apply);
}
std::span<const float> GroupStep::Sum(const SumBucket& bucket) const {
  if (internal::InForkedChild()) return {};
  return impl_->Sum(bucket.index_);
}
void GroupStep::Fail(std::string_view reason) {
  if (internal::InForkedChild()) return;
  impl_->Fail(reason);
}

DiLoCo::DiLoCo(Group& group, const DiLoCoOptions& options)
    : impl_(std::make_unique<internal::OuterLoopImpl>(group.impl_.get(), options)) {}
DiLoCo::DiLoCo(DiLoCo&&) noexcept = default;
DiLoCo& DiLoCo::operator=(DiLoCo&&) noexcept = default;
DiLoCo::~DiLoCo() {
  if (internal::InForkedChild()) (void)impl_.release();
}

void DiLoCo::AddWeights(std::string_view name, std::span<float> weights) {
  if (internal::InForkedChild()) return;
  impl_->AddWeights(name, weights);
}
void DiLoCo::AddMean(std::string_view name, std::span<float> values) {
  if (internal::InForkedChild()) return;
  impl_->AddMean(name, values);
}
std::optional<GroupStep> DiLoCo::NextStep() {
  if (internal::InForkedChild()) return std::nullopt;
  std::unique_ptr<internal::GroupStepImpl> step = impl_->NextStep();
  if (step == nullptr) return std::nullopt;
  return GroupStep(std::move(step));
}
MinibatchRange DiLoCo::Minibatches(GroupStep& step, Prepare prepare) {
  if (internal::InForkedChild()) return {nullptr, nullptr};
  impl_->Begin(*step.impl_);
  return step.Minibatches(std::move(prepare));
}
bool DiLoCo::Commit(GroupStep& step, const std::function<void()>& apply) {
  return !internal::InForkedChild() && impl_->Commit(step.impl_.get(), apply);
}

}  // namespace muster
