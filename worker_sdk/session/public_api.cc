// The classes of include/muster/session.h and minibatch.h, in terms of the implementation.
#include <cstdlib>
#include <utility>

#include "base/crash/crash_stack.h"
#include "base/random.h"
#include "base/status.h"
#include "muster/session.h"
#include "worker_sdk/session/forked_child.h"
#include "worker_sdk/session/minibatch_impl.h"
#include "worker_sdk/session/public_status.h"
#include "worker_sdk/session/session_impl.h"
#include "worker_sdk/session/shard_impl.h"
#include "worker_sdk/session/table_options.h"

namespace muster {

Status internal::ToPublic(const absl::Status& status) {
  using Code = Status::Code;
  std::string message(Message(status));
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return {};
    case absl::StatusCode::kInvalidArgument:
      return {Code::kInvalidArgument, std::move(message)};
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return {Code::kUnavailable, std::move(message)};
    case absl::StatusCode::kFailedPrecondition:
      return {Code::kFailedPrecondition, std::move(message)};
    case absl::StatusCode::kAlreadyExists:
      return {Code::kAlreadyExists, std::move(message)};
    case absl::StatusCode::kNotFound:
      return {Code::kNotFound, std::move(message)};
    case absl::StatusCode::kCancelled:
      return {Code::kInterrupted, std::move(message)};
    case absl::StatusCode::kUnimplemented:
      return {Code::kUnimplemented, std::move(message)};
    default:
      return {Code::kInternal, std::move(message)};
  }
}

namespace {

std::string FromEnv(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

SessionOptions SessionOptions::FromEnvironment() {
  SessionOptions options;
  options.master_address = FromEnv("MUSTER_MASTER");
  options.worker_name = FromEnv("MUSTER_NODE");
  options.slot_file = FromEnv("MUSTER_SLOT_FILE");
  options.start = std::strtoull(FromEnv("MUSTER_START").c_str(), nullptr, 10);
  options.job_id = FromEnv("MUSTER_JOB_ID");
  options.ca_file = FromEnv("MUSTER_CA_FILE");
  options.certificate_file = FromEnv("MUSTER_CERTIFICATE_FILE");
  options.key_file = FromEnv("MUSTER_KEY_FILE");
  options.data_root = FromEnv("MUSTER_DATA_ROOT");
  options.master_away_max_ms =
      std::strtoull(FromEnv("MUSTER_MASTER_AWAY_MAX").c_str(), nullptr, 10) * 1'000;
  return options;
}

std::span<const std::string_view> Minibatch::records() const {
  return impl_->records();
}
std::span<const int64_t> Minibatch::record_numbers() const {
  return impl_->record_numbers();
}
std::shared_ptr<const void> Minibatch::records_owner() const {
  return impl_->records_owner();
}
size_t Minibatch::nominal_size() const {
  return impl_->nominal_size();
}
bool Minibatch::topic() const {
  return impl_->loop().topic() != nullptr;
}
TopicRecord Minibatch::topic_record(size_t record) const {
  if (internal::InForkedChild()) return {};
  return impl_->RecordOfTopic(record);
}
std::vector<TopicHeader> Minibatch::topic_headers(size_t record) const {
  if (internal::InForkedChild()) return {};
  return impl_->HeadersOfTopic(record);
}
bool Minibatch::evaluate() const {
  return impl_->loop().evaluate();
}
bool Minibatch::predict() const {
  return impl_->loop().predict();
}
std::string_view Minibatch::dataset() const {
  return impl_->loop().work().dataset_name;
}
uint32_t Minibatch::epoch() const {
  return impl_->loop().shard_id().epoch.value();
}
uint64_t Minibatch::seed() const {
  const ShardId& shard = impl_->loop().shard_id();
  uint64_t pass = HashWords(shard.dataset.value(), shard.epoch.value());
  return HashWords(impl_->loop().session().job().seed, pass, shard.index.value(),
                   impl_->index().value());
}
uint64_t Minibatch::step() const {
  return impl_->loop().work().first_step + impl_->index().value();
}
void Minibatch::Need(const Table& table, std::span<const uint64_t> keys) {
  if (internal::InForkedChild()) return;
  impl_->Need(TableId(table.id()), keys);
}
void Minibatch::Need(const DenseTensor& tensor) {
  if (internal::InForkedChild()) return;
  impl_->NeedDense(TableId(tensor.id()));
}
std::any& Minibatch::user_data() {
  return impl_->user_data();
}
Rows Minibatch::Pull(const Table& table, std::span<const uint64_t> keys) {
  if (internal::InForkedChild()) return impl_->ZeroRows(keys.size(), table.width());
  return impl_->Pull(TableId(table.id()), table.width(), keys);
}
Rows Minibatch::Pull(const DenseTensor& tensor) {
  if (internal::InForkedChild()) return impl_->ZeroRows(1, tensor.size());
  return impl_->PullDense(TableId(tensor.id()), tensor.size());
}
void Minibatch::Push(const Table& table, std::span<const uint64_t> keys,
                     std::span<const float> gradients) {
  if (internal::InForkedChild()) return;
  impl_->Push(TableId(table.id()), keys, gradients);
}
void Minibatch::Push(const DenseTensor& tensor, std::span<const float> gradient) {
  if (internal::InForkedChild()) return;
  impl_->PushDense(TableId(tensor.id()), gradient);
}
void Minibatch::Commit() {
  if (internal::InForkedChild()) return;
  impl_->Commit();
}
void Minibatch::Metric(std::string_view name, double value, double weight) {
  if (internal::InForkedChild()) return;
  impl_->Metric(name, value, weight);
}
namespace {

/// The same labels as bytes, which may alias anything: so they need no copy.
std::span<const uint8_t> AsBytes(std::span<const bool> labels) {
  static_assert(sizeof(bool) == 1);
  return {reinterpret_cast<const uint8_t*>(labels.data()), labels.size()};
}

}  // namespace

void Minibatch::Auc(std::string_view name, std::span<const float> scores,
                    std::span<const bool> labels) {
  Auc(name, scores, AsBytes(labels));
}
void Minibatch::Auc(std::string_view name, std::span<const float> scores,
                    std::span<const uint8_t> labels) {
  if (internal::InForkedChild()) return;
  impl_->Auc(name, internal::ScoreKind::kProbability, scores, labels);
}
void Minibatch::AucOfLogits(std::string_view name, std::span<const float> logits,
                            std::span<const bool> labels) {
  AucOfLogits(name, logits, AsBytes(labels));
}
void Minibatch::AucOfLogits(std::string_view name, std::span<const float> logits,
                            std::span<const uint8_t> labels) {
  if (internal::InForkedChild()) return;
  impl_->Auc(name, internal::ScoreKind::kLogit, logits, labels);
}
void Minibatch::Output(std::string_view bytes) {
  if (internal::InForkedChild()) return;
  impl_->Output(bytes);
}
void Minibatch::Output(std::span<const float> values, size_t columns) {
  if (internal::InForkedChild()) return;
  impl_->Output(values, columns);
}
void Minibatch::Output(std::string_view piece, const ObjectFormat& format) {
  if (internal::InForkedChild()) return;
  impl_->Output(piece, format);
}
void Minibatch::Reject(size_t record, std::string_view reason) {
  if (internal::InForkedChild()) return;
  impl_->Reject(record, reason);
}

Minibatch& MinibatchRange::Iterator::operator*() const {
  return loop_->current();
}
MinibatchRange::Iterator& MinibatchRange::Iterator::operator++() {
  if (internal::InForkedChild() || !loop_->Advance()) loop_ = nullptr;
  return *this;
}
MinibatchRange::Iterator MinibatchRange::begin() {
  if (loop_ == nullptr || internal::InForkedChild()) return Iterator(nullptr);
  return Iterator(loop_->Begin(std::move(prepare_)) ? loop_ : nullptr);
}

Shard::Shard(std::unique_ptr<internal::ShardImpl> impl) : impl_(std::move(impl)) {}
Shard::Shard(Shard&&) noexcept = default;
Shard& Shard::operator=(Shard&&) noexcept = default;
Shard::~Shard() {
  if (internal::InForkedChild()) (void)impl_.release();
}
MinibatchRange Shard::Minibatches(Prepare prepare) {
  return MinibatchRange(&impl_->loop(), std::move(prepare));
}
void Shard::Fail(std::string_view reason) {
  if (internal::InForkedChild()) return;
  impl_->loop().Fail(reason);
}
std::string Shard::id() const {
  return impl_->loop().id();
}
bool Shard::evaluate() const {
  return impl_->loop().evaluate();
}
std::string_view Shard::header() const {
  return impl_->loop().records().header;
}

Result<Session> Session::Connect(SessionOptions options) {
  if (internal::InForkedChild()) return internal::ToPublic(internal::ForkedChildError());
  PrintStackOfCrash();
  absl::StatusOr<std::unique_ptr<internal::SessionImpl>> impl =
      internal::SessionImpl::Connect(options);
  if (!impl.ok()) return internal::ToPublic(impl.status());
  internal::HasSession();
  return Session(*std::move(impl));
}
Session::Session(std::unique_ptr<internal::SessionImpl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() {
  if (internal::InForkedChild()) (void)impl_.release();
}

Table Session::SparseTable(SparseTableOptions options) {
  if (internal::InForkedChild()) return Table(0, options.dim);
  absl::StatusOr<TableSpec> spec = impl_->Register(sdk::SpecOf(options));
  return spec.ok() ? Table(spec->id.value(), spec->dim) : Table(0, options.dim);
}
DenseTensor Session::DenseTable(DenseTableOptions options) {
  if (!internal::InForkedChild()) {
    absl::StatusOr<TableSpec> spec = impl_->Register(sdk::SpecOf(options));
    if (spec.ok()) return DenseTensor(spec->id.value(), sdk::ElementCount(*spec));
  }
  uint64_t size = 1;
  for (uint64_t extent : options.shape) size *= extent;
  return DenseTensor(0, size);
}
std::map<std::string, uint64_t> Session::numbered_datasets() const {
  std::map<std::string, uint64_t> numbered;
  if (internal::InForkedChild()) return numbered;
  for (const NumberedDataset& dataset : impl_->job().numbered) {
    numbered[dataset.dataset] = dataset.records;
  }
  return numbered;
}
std::optional<Shard> Session::NextShard() {
  if (internal::InForkedChild()) return std::nullopt;
  std::optional<internal::SessionImpl::NextResult> next = impl_->NextShard();
  if (!next) return std::nullopt;
  return Shard(std::make_unique<internal::ShardImpl>(impl_.get(), *std::move(next)));
}
void Session::Leave() {
  if (internal::InForkedChild()) return;
  impl_->Leave();
}
Status Session::status() const {
  if (internal::InForkedChild()) return internal::ToPublic(internal::ForkedChildError());
  return internal::ToPublic(impl_->status());
}
int Session::Finish() {
  if (internal::InForkedChild()) return 1;
  return impl_->Finish();
}

}  // namespace muster
