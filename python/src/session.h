#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "muster/muster.h"
#include "python/src/errors.h"

namespace muster::python {

class Loop;
class PyGroup;

/// Where the job is; what is not given comes from the environment.
struct ConnectOptions {
  std::optional<std::string> master_address;
  std::optional<std::string> worker_name;
  std::optional<std::string> job_id;
  std::optional<double> connect_timeout;  // seconds
};

/// A muster::Session for Python. All members require the GIL, which guards its data; every call
/// that may wait releases it meanwhile. Loops and tables keep it alive.
class PySession : public std::enable_shared_from_this<PySession> {
 public:
  static std::shared_ptr<PySession> Connect(const ConnectOptions& options);
  ~PySession();
  PySession(const PySession&) = delete;
  PySession& operator=(const PySession&) = delete;

  /// The session; raises if it is closed.
  Session& session();
  /// The next shard's loop; null if there is none any more.
  std::shared_ptr<Loop> NextLoop(nb::object parse);
  void Leave();
  int Finish();
  /// Ends the session and its group: loops that are open hand their shards back. False: a call is
  /// in progress.
  bool Close();

  /// Calls `call`, which may wait, without the GIL. Then raises what a signal handler raised
  /// meanwhile, or else why the session has failed.
  template <typename Call>
  void Wait(Call&& call) {
    {
      const InCall in_call(this);
      const nb::gil_scoped_release release;
      call();
    }
    Check();
  }
  /// Raises what a signal handler has raised in a wait of this thread, or else why the session has
  /// failed.
  void Check();
  /// Raises only what a signal handler has raised in a wait of this thread.
  void RaiseInterrupt();
  /// A signal handler has raised in a wait of this thread, and nobody has seen it yet.
  bool interrupted() const {
    return interrupt_ && interrupted_thread_ == std::this_thread::get_id();
  }

  /// Counts a call in progress, during which the session stays open.
  class InCall {
   public:
    explicit InCall(PySession* session) : session_(session) { ++session_->calls_; }
    ~InCall() { --session_->calls_; }
    InCall(const InCall&) = delete;
    InCall& operator=(const InCall&) = delete;

   private:
    PySession* const session_;
  };

  void Add(Loop* loop) { loops_.insert(loop); }
  void Remove(Loop* loop) { loops_.erase(loop); }
  /// A process has one group at a time; null: none.
  void SetGroup(PyGroup* group) { group_ = group; }

 private:
  PySession() = default;
  /// SessionOptions::interrupted: without the GIL, on the thread that waits.
  bool AskForSignals();

  std::optional<Session> session_;
  std::set<Loop*> loops_;
  PyGroup* group_ = nullptr;
  int calls_ = 0;
  std::exception_ptr interrupt_;
  std::thread::id interrupted_thread_;
};

}  // namespace muster::python
