#include "python/src/session.h"

#include <string>
#include <utility>
#include <vector>

#include "python/src/group.h"
#include "python/src/loop.h"

namespace muster::python {
namespace {

class ShardSource : public LoopSource {
 public:
  explicit ShardSource(Shard shard) : shard_(std::move(shard)) {}
  MinibatchRange Minibatches(Prepare prepare) override {
    return shard_.Minibatches(std::move(prepare));
  }
  void Fail(const std::string& reason) override { shard_.Fail(reason); }
  std::string id() const override { return shard_.id(); }
  std::string header() const override { return std::string(shard_.header()); }

 private:
  Shard shard_;
};

}  // namespace

std::shared_ptr<PySession> PySession::Connect(const ConnectOptions& given) {
  const std::shared_ptr<PySession> session(new PySession());
  SessionOptions options = SessionOptions::FromEnvironment();
  if (given.master_address) options.master_address = *given.master_address;
  if (given.worker_name) options.worker_name = *given.worker_name;
  if (given.job_id) options.job_id = *given.job_id;
  if (given.connect_timeout) {
    if (!(*given.connect_timeout >= 0 && *given.connect_timeout <= 1e9)) {
      throw nb::value_error("connect_timeout: seconds from 0 to 1e9 are allowed");
    }
    options.connect_timeout_ms = static_cast<uint64_t>(*given.connect_timeout * 1'000);
  }
  options.interrupted = [raw = session.get()] { return raw->AskForSignals(); };
  std::optional<Result<Session>> result;
  {
    const nb::gil_scoped_release release;
    result.emplace(Session::Connect(std::move(options)));
  }
  session->RaiseInterrupt();
  RaiseIfError(result->status());
  session->session_.emplace(std::move(**result));
  return session;
}

PySession::~PySession() {
  const nb::gil_scoped_release release;
  session_.reset();
}

bool PySession::AskForSignals() {
  const nb::gil_scoped_acquire acquire;
  if (interrupted()) return true;
  if (PyErr_CheckSignals() == 0) return false;
  interrupt_ = std::make_exception_ptr(nb::python_error());
  interrupted_thread_ = std::this_thread::get_id();
  return true;
}

void PySession::RaiseInterrupt() {
  if (interrupted()) std::rethrow_exception(std::exchange(interrupt_, nullptr));
}

void PySession::Check() {
  RaiseInterrupt();
  if (session_) RaiseIfError(session_->status());
}

Session& PySession::session() {
  if (!session_) {
    Raise(Status::Code::kFailedPrecondition, "the session is closed: connect again");
  }
  return *session_;
}

std::shared_ptr<Loop> PySession::NextLoop(nb::object parse) {
  Session& session = this->session();
  std::optional<Shard> shard;
  {
    const InCall in_call(this);
    const nb::gil_scoped_release release;
    shard = session.NextShard();
  }
  if (!shard) {
    Check();
    return nullptr;
  }
  // If a signal's handler has raised, the shard goes back.
  RaiseInterrupt();
  return Loop::Make(shared_from_this(), std::make_unique<ShardSource>(*std::move(shard)),
                    std::move(parse));
}

void PySession::Leave() {
  Session& session = this->session();
  session.Leave();
}

int PySession::Finish() {
  Session& session = this->session();
  int code = 1;
  {
    const InCall in_call(this);
    const nb::gil_scoped_release release;
    code = session.Finish();
  }
  RaiseInterrupt();
  return code;
}

bool PySession::Close() {
  if (calls_ > 0) return false;
  const std::vector<Loop*> loops(loops_.begin(), loops_.end());
  for (Loop* loop : loops) loop->Close();
  if (group_ != nullptr) group_->Close();
  std::optional<Session> ended = std::exchange(session_, std::nullopt);
  const nb::gil_scoped_release release;
  ended.reset();
  return true;
}

}  // namespace muster::python
