#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "base/mutex.h"

namespace muster::collectives::testing {

/// Guards all streams and events of the fake GPU, because work of one makes progress in another:
/// hold it in every call, and in tasks.
inline Mutex fake_streams;

/// A stream of the fake GPU: tasks in order; each returns true when it is done.
class FakeStream {
 public:
  void Push(std::function<bool()> task) { tasks_.push_back(std::move(task)); }
  /// True: everything is done.
  bool Advance() {
    if (busy_) return false;
    busy_ = true;
    while (!tasks_.empty() && tasks_.front()()) tasks_.pop_front();
    busy_ = false;
    return tasks_.empty();
  }

 private:
  std::deque<std::function<bool()>> tasks_;
  bool busy_ = false;
};

/// A mark in a stream.
class FakeEvent {
 public:
  void Record(const std::shared_ptr<FakeStream>& stream) {
    stream_ = stream;
    done_ = std::make_shared<bool>(false);
    stream->Push([done = done_] { return *done = true; });
  }
  /// True: it has happened, or was never recorded.
  bool Advance() {
    if (done_ != nullptr && !*done_) stream_->Advance();
    return done_ == nullptr || *done_;
  }
  void Wait(FakeStream* stream) {
    if (done_ == nullptr) return;
    stream->Push([from = stream_, done = done_] {
      if (!*done) from->Advance();
      return *done;
    });
  }

 private:
  std::shared_ptr<FakeStream> stream_;
  std::shared_ptr<bool> done_;
};

}  // namespace muster::collectives::testing
