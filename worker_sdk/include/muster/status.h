#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "muster/export.h"

namespace muster {

/// The outcome of a call: success if `code()` is kOk, otherwise an error with a message. A value;
/// thread-compatible.
class [[nodiscard]] MUSTER_EXPORT Status {
 public:
  enum class Code {
    kOk = 0,
    kInvalidArgument,     // the call can never succeed; the message says what to change
    kUnavailable,         // the master did not answer in time
    kFailedPrecondition,  // wrong SDK version, wrong job, or an export that does not fit
    kAlreadyExists,  // a table of this name exists with another definition; the message shows both
    kInternal,
    kNotFound,       // a file or a library is missing
    kUnimplemented,  // a library is too old
    kInterrupted,    // SessionOptions::interrupted has ended a wait
  };
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

/// A value, or the Status that says why there is no value. Thread-compatible.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit on purpose
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit on purpose
  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  /// The value. If there is none, prints the message and exits with code 1; so call it in main()
  /// only.
  T value() && {
    if (!ok()) {
      std::fprintf(stderr, "muster: %s\n", status_.message().c_str());
      std::exit(1);
    }
    return *std::move(value_);
  }
  T& operator*() & { return *value_; }
  T* operator->() { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace muster
