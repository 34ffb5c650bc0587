#include "python/src/group.h"

#include <cstring>
#include <exception>
#include <utility>

#include "python/src/errors.h"

namespace muster::python {
namespace {

constexpr char kBucketWhy[] = "those of the bucket";

/// Ends Commit after an exception of Python's, which is kept for when the GIL is held again.
struct ApplyRaised {};

[[noreturn]] void RaisePrecondition(const std::string& message) {
  Raise(Status::Code::kFailedPrecondition, message);
}

class StepSource : public LoopSource {
 public:
  StepSource(std::shared_ptr<PyGroup> group, std::shared_ptr<PyStep> step)
      : group_(std::move(group)), step_(std::move(step)) {}
  MinibatchRange Minibatches(Prepare prepare) override {
    GroupStep& step = step_->step();
    if (DiLoCo* const local = group_->local()) return local->Minibatches(step, std::move(prepare));
    return step.Minibatches(std::move(prepare));
  }
  /// Does not raise: `parse` may have raised already.
  void Fail(const std::string& reason) override {
    const PySession::InCall in_call(&group_->session());
    const nb::gil_scoped_release release;
    step_->step().Fail(reason);
  }
  std::string id() const override { return "step " + std::to_string(step_->number()); }
  std::string header() const override { return ""; }

 private:
  const std::shared_ptr<PyGroup> group_;
  const std::shared_ptr<PyStep> step_;
};

}  // namespace

std::shared_ptr<PyGroup> PyGroup::Make(std::shared_ptr<PySession> session,
                                       const CollectiveOptions& options) {
  Session& own = session->session();
  std::optional<Result<Group>> result;
  session->Wait([&] { result.emplace(own.Group(options)); });
  RaiseIfError(result->status());
  const std::shared_ptr<PyGroup> group(new PyGroup(std::move(session)));
  group->group_.emplace(std::move(**result));
  group->session_->SetGroup(group.get());
  return group;
}

PyGroup::~PyGroup() {
  Close();
}

void PyGroup::RequireThread() const {
  if (!thread_ || *thread_ == std::this_thread::get_id()) return;
  RaisePrecondition("this group belongs to the thread that asked for its first step: use it there");
}

Group& PyGroup::Use() {
  RequireThread();
  session_->session();
  if (!group_) RaisePrecondition("the group is closed: make another one");
  return *group_;
}

DiLoCo& PyGroup::UseLocal() {
  Use();
  if (!local_) RaisePrecondition("the group has no local steps: make a muster.DiLoCo of it");
  return *local_;
}

PyBucket PyGroup::AddBucket(const std::string& name, int64_t elements, const SumOptions& options) {
  if (elements < 1) {
    const std::string what =
        "elements: at least 1 is allowed, " + std::to_string(elements) + " came";
    throw nb::value_error(what.c_str());
  }
  PyBucket bucket{this, name, Use().AddBucket(name, static_cast<uint64_t>(elements), options)};
  session_->Check();
  return bucket;
}

void PyGroup::AddState(const std::string& name, nb::handle values) {
  Group& group = Use();
  const Writable& kept = memory_.emplace_back(WritableOf(values, name));
  const auto span = [&]<typename T>(T*) {
    return std::span(reinterpret_cast<T*>(kept.bytes.data()), kept.bytes.size() / sizeof(T));
  };
  if (kept.array.dtype() == nb::dtype<float>()) {
    group.AddState(name, span(static_cast<float*>(nullptr)));
  } else if (kept.array.dtype() == nb::dtype<double>()) {
    group.AddState(name, span(static_cast<double*>(nullptr)));
  } else if (kept.array.dtype() == nb::dtype<int64_t>()) {
    group.AddState(name, span(static_cast<int64_t*>(nullptr)));
  } else {
    group.AddState(name, kept.bytes);
  }
  session_->Check();
}

void PyGroup::TrainLocally(const DiLoCoOptions& options) {
  Group& group = Use();
  if (local_) RaisePrecondition("the group has a DiLoCo already");
  local_.emplace(group, options);
  session_->Check();
}

std::span<float> PyGroup::Keep(nb::handle values, const std::string& name) {
  const size_t elements = WritableOf(values, name).array.size();
  const Writable& kept = memory_.emplace_back(WritableFloatsOf(values, name, elements, ""));
  return {reinterpret_cast<float*>(kept.bytes.data()), elements};
}

void PyGroup::AddWeights(const std::string& name, nb::handle values) {
  DiLoCo& local = UseLocal();
  local.AddWeights(name, Keep(values, name));
  session_->Check();
}

void PyGroup::AddMean(const std::string& name, nb::handle values) {
  DiLoCo& local = UseLocal();
  local.AddMean(name, Keep(values, name));
  session_->Check();
}

std::shared_ptr<PyStep> PyGroup::NextStep() {
  Group& group = Use();
  if (const std::shared_ptr<PyStep> before = step_.lock()) {
    if (before->busy()) RaisePrecondition("next_step() inside of a call of the step before");
    before->End();
  }
  thread_ = std::this_thread::get_id();
  std::optional<GroupStep> step;
  session_->Wait([&] { step = local_ ? local_->NextStep() : group.NextStep(); });
  if (!step) return nullptr;
  auto made = std::make_shared<PyStep>(shared_from_this(), *std::move(step));
  step_ = made;
  return made;
}

bool PyGroup::HasFinalState() {
  Group& group = Use();
  session_->Check();
  return group.HasFinalState();
}

void PyGroup::Close() {
  if (!group_) return;
  if (const std::shared_ptr<PyStep> step = step_.lock()) {
    if (step->busy()) RaisePrecondition("close() inside of a call of the group's step");
    step->End();
  }
  {
    std::optional<Group> ended = std::exchange(group_, std::nullopt);
    std::optional<DiLoCo> local = std::exchange(local_, std::nullopt);
    const nb::gil_scoped_release release;
    local.reset();
    ended.reset();
  }
  session_->SetGroup(nullptr);
  memory_.clear();
}

PyStep::PyStep(std::shared_ptr<PyGroup> group, GroupStep step)
    : group_(std::move(group)),
      step_(std::move(step)),
      number_(step_->step()),
      epoch_(step_->epoch()),
      evaluate_(step_->evaluate()),
      replay_(step_->replay()),
      state_copied_(step_->state_copied()) {}

PyStep::~PyStep() {
  End();
}

bool PyStep::busy() const {
  const std::shared_ptr<Loop> loop = loop_.lock();
  return adds_ > 0 || in_commit_ || (loop != nullptr && loop->in_use());
}

void PyStep::End() {
  if (const std::shared_ptr<Loop> loop = loop_.lock()) loop->Close();
  std::optional<GroupStep> ended = std::exchange(step_, std::nullopt);
  const nb::gil_scoped_release release;
  ended.reset();
}

GroupStep& PyStep::Use() {
  group_->RequireThread();
  if (!step_) RaisePrecondition("the step is over: ask the group for the next one");
  return *step_;
}

void PyStep::RequireBucket(const PyBucket& bucket) const {
  if (bucket.group == group_.get()) return;
  const std::string what =
      "the bucket \"" + bucket.name + "\" is of another group: add it to this one";
  throw nb::value_error(what.c_str());
}

uint64_t PyStep::Records() const {
  return const_cast<PyStep*>(this)->Use().records();
}

std::shared_ptr<Loop> PyStep::Minibatches(nb::object parse) {
  Use();
  if (std::exchange(looped_, true)) {
    RaisePrecondition("a step has one loop over its minibatches");
  }
  const std::shared_ptr<PySession> session = group_->session().shared_from_this();
  auto loop = Loop::Make(session, std::make_unique<StepSource>(group_, shared_from_this()),
                         std::move(parse));
  loop_ = loop;
  return loop;
}

void PyStep::Add(const PyBucket& bucket, nb::handle gradient) {
  RequireBucket(bucket);
  const Given<float> given = ElementsOf(gradient, "gradient", bucket.bucket.elements(), kBucketWhy);
  if (!step_) RaisePrecondition("the step is over: ask the group for the next one");
  if (evaluate_) RaisePrecondition("an evaluation has no sums: check step.evaluate before add()");
  ++adds_;
  {
    const PySession::InCall in_call(&group_->session());
    const nb::gil_scoped_release release;
    step_->Add(bucket.bucket, given.values);
  }
  --adds_;
  group_->session().Check();
}

void PyStep::Put(const PyBucket& bucket, nb::handle sum) {
  RequireBucket(bucket);
  const Given<float> given = ElementsOf(sum, "sum", bucket.bucket.elements(), kBucketWhy);
  GroupStep& step = Use();
  if (evaluate_) RaisePrecondition("an evaluation has no sums: check step.evaluate before put()");
  group_->session().Wait([&] { step.Put(bucket.bucket, given.values); });
}

bool PyStep::Commit(nb::object apply) {
  GroupStep& step = Use();
  if (busy()) RaisePrecondition("commit() inside of another call of the step");
  std::exception_ptr raised;
  const auto call = [&] {
    {
      const nb::gil_scoped_acquire acquire;
      in_apply_ = true;
      try {
        apply();
      } catch (nb::python_error&) {
        raised = std::current_exception();
      }
      in_apply_ = false;
    }
    if (raised) throw ApplyRaised();
  };
  const std::function<void()> optional = apply.is_none() ? nullptr : std::function<void()>(call);
  bool applied = false;
  in_commit_ = true;
  {
    const PySession::InCall in_call(&group_->session());
    const nb::gil_scoped_release release;
    DiLoCo* const local = group_->local();
    try {
      applied = local != nullptr ? local->Commit(step, optional) : step.Commit(optional);
    } catch (const ApplyRaised&) {
    }
  }
  in_commit_ = false;
  if (raised) std::rethrow_exception(std::exchange(raised, nullptr));
  group_->session().Check();
  return applied;
}

nb::object PyStep::Sum(const PyBucket& bucket, nb::object out) {
  RequireBucket(bucket);
  GroupStep& step = Use();
  if (!in_apply_) RaisePrecondition("sum() is only for the function that commit() is given");
  if (out.is_none()) return CopyOf(step.Sum(bucket.bucket));
  const Writable given = WritableFloatsOf(out, "out", bucket.bucket.elements(), kBucketWhy);
  const std::span<const float> sum = step.Sum(bucket.bucket);
  std::memcpy(given.bytes.data(), sum.data(), sum.size_bytes());
  return out;
}

void PyStep::Fail(const std::string& reason) {
  GroupStep& step = Use();
  group_->session().Wait([&] { step.Fail(reason); });
}

}  // namespace muster::python
