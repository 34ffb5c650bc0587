#include "base/status.h"
#include "sharding/codec/control_codec.h"
#include "sharding/codec/limits.h"

namespace muster {
namespace {

using codec_internal::CheckCount;
using codec_internal::CheckEnum;
using codec_internal::CheckText;

constexpr int kShapeDimensionsMax = 16;

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

void OptimizerToProto(const OptimizerSpec& from, v1::Optimizer* to) {
  to->set_kind(static_cast<uint32_t>(from.index()));
  std::visit(Overloaded{
                 [](const SumSpec&) {},
                 [to](const SgdSpec& o) {
                   to->set_learning_rate(o.learning_rate);
                   to->set_weight_decay(o.weight_decay);
                 },
                 [to](const MomentumSpec& o) {
                   to->set_learning_rate(o.learning_rate);
                   to->set_momentum(o.momentum);
                   to->set_nesterov(o.nesterov);
                   to->set_weight_decay(o.weight_decay);
                 },
                 [to](const AdagradSpec& o) {
                   to->set_learning_rate(o.learning_rate);
                   to->set_initial_accumulator(o.initial_accumulator);
                   to->set_epsilon(o.epsilon);
                 },
                 [to](const RowwiseAdagradSpec& o) {
                   to->set_learning_rate(o.learning_rate);
                   to->set_initial_accumulator(o.initial_accumulator);
                   to->set_epsilon(o.epsilon);
                 },
                 [to](const AdamSpec& o) {
                   to->set_learning_rate(o.learning_rate);
                   to->set_beta1(o.beta1);
                   to->set_beta2(o.beta2);
                   to->set_epsilon(o.epsilon);
                 },
                 [to](const AdamWSpec& o) {
                   to->set_learning_rate(o.learning_rate);
                   to->set_beta1(o.beta1);
                   to->set_beta2(o.beta2);
                   to->set_epsilon(o.epsilon);
                   to->set_weight_decay(o.weight_decay);
                 },
                 [to](const FtrlSpec& o) {
                   to->set_learning_rate(o.learning_rate);
                   to->set_beta1(o.beta);
                   to->set_lambda1(o.lambda1);
                   to->set_lambda2(o.lambda2);
                 },
             },
             from);
}

absl::StatusOr<OptimizerSpec> OptimizerFromProto(const v1::Optimizer& o) {
  switch (o.kind()) {
    case 0:
      return SumSpec{};
    case 1:
      return SgdSpec{o.learning_rate(), o.weight_decay()};
    case 2:
      return MomentumSpec{o.learning_rate(), o.momentum(), o.nesterov(), o.weight_decay()};
    case 3:
      return AdagradSpec{o.learning_rate(), o.initial_accumulator(), o.epsilon()};
    case 4:
      return RowwiseAdagradSpec{o.learning_rate(), o.initial_accumulator(), o.epsilon()};
    case 5:
      return AdamSpec{o.learning_rate(), o.beta1(), o.beta2(), o.epsilon()};
    case 6:
      return AdamWSpec{o.learning_rate(), o.beta1(), o.beta2(), o.epsilon(), o.weight_decay()};
    case 7:
      return FtrlSpec{o.learning_rate(), o.beta1(), o.lambda1(), o.lambda2()};
    default:
      return CheckEnum("optimizer.kind", o.kind(), 7);
  }
}

}  // namespace

void ToProto(const TableSpec& from, v1::Table* to) {
  to->set_id(from.id.value());
  to->set_name(from.name);
  to->set_dim(from.dim);
  for (uint64_t size : from.shape) to->add_shape(size);
  OptimizerToProto(from.optimizer, to->mutable_optimizer());
  to->mutable_initializer()->set_kind(static_cast<uint32_t>(from.initializer.kind));
  to->mutable_initializer()->set_a(from.initializer.a);
  to->mutable_initializer()->set_b(from.initializer.b);
  to->mutable_schedule()->set_kind(static_cast<uint32_t>(from.schedule.kind));
  to->mutable_schedule()->set_warmup_steps(from.schedule.warmup_steps);
  to->mutable_schedule()->set_period_steps(from.schedule.period_steps);
  to->mutable_schedule()->set_decay(from.schedule.decay);
  to->mutable_schedule()->set_final_factor(from.schedule.final_factor);
  to->set_warm_start_directory(from.warm_start_directory);
  to->set_warm_start_hash(from.warm_start_hash);
}

absl::StatusOr<TableSpec> FromProto(const v1::Table& from) {
  MUSTER_RETURN_IF_ERROR(CheckText("table.name", from.name(), kNameBytesMax));
  MUSTER_RETURN_IF_ERROR(CheckCount("table.shape", from.shape_size(), kShapeDimensionsMax));
  MUSTER_RETURN_IF_ERROR(
      CheckText("table.warm_start_directory", from.warm_start_directory(), kTextBytesMax));
  MUSTER_RETURN_IF_ERROR(CheckText("table.warm_start_hash", from.warm_start_hash(), kNameBytesMax));
  MUSTER_RETURN_IF_ERROR(CheckEnum("initializer.kind", from.initializer().kind(), 3));
  MUSTER_RETURN_IF_ERROR(CheckEnum("schedule.kind", from.schedule().kind(), 2));
  TableSpec to;
  to.id = TableId(from.id());
  to.name = from.name();
  to.dim = from.dim();
  to.shape.assign(from.shape().begin(), from.shape().end());
  MUSTER_ASSIGN_OR_RETURN(to.optimizer, OptimizerFromProto(from.optimizer()));
  to.initializer.kind = static_cast<InitializerSpec::Kind>(from.initializer().kind());
  to.initializer.a = from.initializer().a();
  to.initializer.b = from.initializer().b();
  to.schedule.kind = static_cast<ScheduleSpec::Kind>(from.schedule().kind());
  to.schedule.warmup_steps = from.schedule().warmup_steps();
  to.schedule.period_steps = from.schedule().period_steps();
  to.schedule.decay = from.schedule().decay();
  to.schedule.final_factor = from.schedule().final_factor();
  to.warm_start_directory = from.warm_start_directory();
  to.warm_start_hash = from.warm_start_hash();
  return to;
}

}  // namespace muster
