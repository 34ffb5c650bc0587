#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "muster/export.h"
#include "muster/group.h"
#include "muster/minibatch.h"

namespace muster {

namespace internal {
class OuterLoopImpl;
}  // namespace internal

/// Synchronous training over a slow network: members train alone for many minibatches, and only
/// then bring their weights together. In a step of the group, each member trains on its minibatches
/// with an optimizer of its own (the *inner* one). At the end of the step, the group takes the mean
/// of what the members have changed (weights before minus weights after, the *pseudo-gradient*),
/// and an *outer* optimizer applies it to the weights that all members share.
///
///   muster::Group group = session.Group().value();
///   muster::DiLoCo diloco(group);
///   diloco.AddWeights("weights", weights);
///   while (auto step = diloco.NextStep()) {
///     for (muster::Minibatch& batch : diloco.Minibatches(*step)) {
///       inner.Update(&weights, Gradient(weights, batch.records()));
///     }
///     diloco.Commit(*step);
///   }
///   return session.Finish();
///
/// What holds: every minibatch is in exactly one step that was applied, and after each step all
/// members share the same weights, bit for bit. Two runs differ, because the way in which the
/// minibatches of a step are divided among the members changes the result.
///
/// The number of local steps, H in the papers, is a member's share of a step:
/// spec.group.globalBatch / minibatchSize / members. A step has the same data whoever is there, so
/// with fewer members each makes more local steps. If a member dies in a step, the others train on
/// its minibatches, too, from where they are. So a step of an hour can take almost two.
///
/// The mean is over the members that trained in the step, each with weight 1, as in the papers. So
/// each inner step of the group counts alike, whichever member made it. See also
/// DiLoCoOptions::members.
///
/// The state of the inner optimizer belongs to each process, and the group does not know it: a
/// process that is started again begins without it, and minibatches that a member must compute
/// again have changed it twice. Register it with AddMean if that is not wanted.
///
/// Memory: the shared weights, the moments of the outer optimizer, the group's sums (12 bytes per
/// weight), and a scratch array of the largest piece. With `fragments` or `mixing`, one or two more
/// copies of the weights.
///
/// Sources: Stich, "Local SGD Converges Fast and Communicates Little", ICLR 2019. Douillard et al.,
/// "DiLoCo: Distributed Low-Communication Training of Language Models", 2023. Douillard et al.,
/// "Streaming DiLoCo with overlapping communication", 2025.

/// w -= learning_rate * change, where `change` is the pseudo-gradient. With 1, the weights become
/// the mean of the members' weights: LocalSGD. Options are values, like all in this header that
/// begin with Outer.
struct OuterSgd {
  float learning_rate = 1;
};
/// m = momentum * m + change; w -= learning_rate * (change + momentum * m). The papers use it with
/// these numbers.
struct OuterNesterov {
  float learning_rate = 0.7F;
  float momentum = 0.9F;
};
/// Kingma, Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015. With a small `epsilon`, it
/// is unstable, because changes are small; the DiLoCo paper uses 0.1.
struct OuterAdam {
  float learning_rate = 0.3F;
  float beta1 = 0.9F;
  float beta2 = 0.95F;
  float epsilon = 0.1F;
};
/// `learning_rate` is above 0, and at most 1000. `momentum`, `beta1` and `beta2` are at least 0,
/// and below 1. `epsilon` is above 0, and at most 1.
using OuterOptimizer = std::variant<OuterNesterov, OuterSgd, OuterAdam>;

/// All members have the same options, and a job that is continued has those with which it began.
struct DiLoCoOptions {
  OuterOptimizer outer = OuterNesterov{};
  /// How changes are added. With kBfloat16, half as many bytes are sent.
  SumOptions sum{.type = SumType::kFloat32};
  /// Streaming: each step synchronises one fragment of the weights, and after `fragments` steps,
  /// each was synchronised once. So a step sends a fraction of the bytes; make it as much shorter.
  /// Piece p of AddWeights, counted from 0, is in fragment p % fragments. From 1 to 1024, and not
  /// more than there are pieces. Pieces of similar sizes share buckets best.
  ///
  /// Until a fragment is synchronised, what a member has changed in it is known to this member
  /// only. It is lost if the process dies, falls behind, or has no minibatch in a step. The step
  /// and its data still count once: but in these fragments, some minibatches then have no effect.
  uint32_t fragments = 1;
  /// After a fragment is synchronised, the member goes on from
  /// mixing * its own weights + (1 - mixing) * the shared weights. From 0 (no own weights) to below
  /// 1. Its changes count once, before or after. The same is lost as with fragments.
  float mixing = 0;
  /// The number of members for which the rates are meant; at most 1024. With 0, the pseudo-gradient
  /// is the mean over the members that have trained in the step. So with fewer members, which make
  /// more local steps each, the weights move farther in a step. With a number, the sum of the
  /// changes is divided by it, whoever is there: each inner step then counts alike in all steps,
  /// and a run whose members die moves about as far as one in which they live.
  uint32_t members = 0;
};

/// A group that trains with local steps. Use its NextStep, Minibatches and Commit in place of those
/// of the group and of the step. Further state and buckets of the group work as usual, for example
/// a bucket for the loss: call GroupStep::Add in the loop, and GroupStep::Sum in what Commit is
/// given. "The session fails" means the same as in muster/group.h. Not thread-safe: it belongs to
/// the thread that calls NextStep.
class MUSTER_EXPORT DiLoCo {
 public:
  /// `group` must outlive it, and may be moved. A group has one DiLoCo or LocalSgd, as long as it
  /// exists: with a second one, the session fails.
  explicit DiLoCo(Group& group, const DiLoCoOptions& options = {});
  DiLoCo(DiLoCo&&) noexcept;
  DiLoCo& operator=(DiLoCo&&) noexcept;
  ~DiLoCo();

  /// Registers a piece of the weights, in the same order in every member. The memory stays the
  /// caller's and must stay where it is. It has the initial weights when the first NextStep is
  /// called, and the names and errors are those of Group::AddState.
  ///
  /// Inside the loop, this memory has the weights of this member, which the inner optimizer
  /// changes. It has the weights that all members share in an evaluation, after Commit has returned
  /// true, and when NextStep has returned nullopt.
  void AddWeights(std::string_view name, std::span<float> weights);
  /// Registers values of which each step leaves the plain mean over the members, without an outer
  /// optimizer: moments of the inner optimizer, or statistics of a normalisation. Like weights,
  /// they begin again where the step began if minibatches are computed again, and a process that
  /// joins has them. They are sent in float32 in every step.
  void AddMean(std::string_view name, std::span<float> values);

  /// See Group::NextStep. The first call registers everything with the group. If an option or a
  /// piece cannot be used, the session fails.
  std::optional<GroupStep> NextStep();
  /// The minibatches of this member, for a loop: see GroupStep::Minibatches. Sets the weights to
  /// those from which this member goes on.
  MinibatchRange Minibatches(GroupStep& step, Prepare prepare = nullptr);
  /// Ends the step: see GroupStep::Commit. Returns true if it has happened. The outer optimizer has
  /// then changed the shared weights, and after it `apply`, if there is one, the caller's own
  /// state, by the rules of GroupStep::Commit. If Commit returns false, the weights are those of
  /// this member until the next NextStep.
  ///
  /// If this member has changed a weight to NaN or infinity, or by more than the type of the sum
  /// holds, the step fails like with GroupStep::Fail, and the reason names the element. If the loop
  /// was not that of Minibatches above, the session fails.
  bool Commit(GroupStep& step, const std::function<void()>& apply = nullptr);

 private:
  std::unique_ptr<internal::OuterLoopImpl> impl_;
};

/// LocalSGD: after each step, all members go on from the mean of their weights. With one member,
/// it is the inner optimizer alone, up to the rounding of one subtraction.
class MUSTER_EXPORT LocalSgd : public DiLoCo {
 public:
  explicit LocalSgd(Group& group, SumOptions sum = {.type = SumType::kFloat32})
      : DiLoCo(group, {.outer = OuterSgd{}, .sum = sum}) {}
};

}  // namespace muster
