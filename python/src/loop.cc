#include "python/src/loop.h"

#include <nanobind/stl/shared_ptr.h>

#include <utility>

#include "python/src/errors.h"

namespace muster::python {

std::shared_ptr<Loop> Loop::Make(std::shared_ptr<PySession> session,
                                 std::unique_ptr<LoopSource> source, nb::object parse) {
  return std::shared_ptr<Loop>(new Loop(std::move(session), std::move(source), std::move(parse)));
}

Loop::Loop(std::shared_ptr<PySession> session, std::unique_ptr<LoopSource> source, nb::object parse)
    : session_(std::move(session)), source_(std::move(source)), parse_(std::move(parse)) {
  session_->Add(this);
}

Loop::~Loop() {
  Close();
  session_->Remove(this);
}

void Loop::RequireThread() const {
  if (thread_ == std::this_thread::get_id()) return;
  Raise(Status::Code::kFailedPrecondition,
        "this minibatch belongs to the thread that runs its loop: use it there, or run a loop of "
        "its own in each thread");
}

std::shared_ptr<Batch> Loop::Add(Minibatch& minibatch) {
  auto batch = std::make_shared<Batch>(shared_from_this(), &minibatch);
  batches_.emplace_back(batch, nb::cast(batch));
  return batch;
}

void Loop::Parse(Minibatch& minibatch) {
  const nb::gil_scoped_acquire acquire;
  if (caught_ || session_->interrupted()) return;
  try {
    Add(minibatch);
    const nb::object& batch = batches_.back().second;
    batch.attr("data") = parse_(batch);
  } catch (nb::python_error& error) {
    caught_ = std::current_exception();
    if (error.matches(PyExc_Exception)) source_->Fail(Describe(error.value()));
  }
}

Result<std::string> Loop::JoinOutputs(std::span<const std::string_view> pieces) {
  const nb::gil_scoped_acquire acquire;
  try {
    nb::list views;
    for (const std::string_view piece : pieces) {
      views.append(nb::steal(PyMemoryView_FromMemory(
          const_cast<char*>(piece.data()), static_cast<Py_ssize_t>(piece.size()), PyBUF_READ)));
    }
    const auto bytes =
        nb::cast<nb::bytes>(nb::module_::import_("muster._outputs").attr("to_parquet")(views));
    return std::string(bytes.c_str(), bytes.size());
  } catch (nb::python_error& error) {
    if (error.matches(PyExc_Exception)) {
      return Status(Status::Code::kInvalidArgument, Describe(error.value()));
    }
    caught_ = std::current_exception();
    return Status(Status::Code::kInterrupted, "it was interrupted");
  }
}

void Loop::RaiseCaught() {
  if (!caught_) return;
  Close();
  std::rethrow_exception(std::exchange(caught_, nullptr));
}

nb::object Loop::Next() {
  RequireThread();
  if (!source_) return nb::none();
  if (begun_) {
    const std::shared_ptr<Batch> left = batches_.front().first;
    left->BeforeCommit();
    if (!source_) return nb::none();
    left->Leave();
    batches_.pop_front();
  }
  {
    const PySession::InCall in_call(session_.get());
    const InUse in_use(this);
    const nb::gil_scoped_release release;
    if (begun_) {
      ++at_;
    } else {
      Prepare prepare;
      if (!parse_.is_none()) prepare = [this](Minibatch& minibatch) { Parse(minibatch); };
      at_ = range_.emplace(source_->Minibatches(std::move(prepare))).begin();
    }
  }
  begun_ = true;
  RaiseCaught();
  const bool ended = at_ == range_->end();
  if (ended || session_->interrupted()) {
    Close();
    session_->Check();
    return nb::none();
  }
  if (batches_.empty()) Add(*at_);
  // What it calls may close the loop.
  const auto [batch, object] = batches_.front();
  batch->Begin();
  return object;
}

void Loop::Fail(const std::string& reason) {
  if (source_) source_->Fail(reason);
}

void Loop::Close() {
  if (uses_ > 0) return;
  for (const auto& [batch, object] : batches_) batch->Leave();
  std::deque<std::pair<std::shared_ptr<Batch>, nb::object>>().swap(batches_);
  parse_ = nb::none();
  source_.reset();
}

}  // namespace muster::python
