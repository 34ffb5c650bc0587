#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

// Debian's Abseil is built for C++14, so its absl::string_view is not std::string_view. Make
// messages with fmt::format, and read them with Message().

/// The message of `status`, without its code.
inline std::string_view Message(const absl::Status& status) {
  return {status.message().data(), status.message().size()};
}

/// Returns `status` with `context` and ": " put before its message; OK stays OK. Keeps the code.
absl::Status Annotate(const absl::Status& status, std::string_view context);

/// The status of the failed system call described by `what`, with the code and the text of
/// `error_number` (errno).
absl::Status ErrnoStatus(int error_number, std::string_view what);

namespace status_internal {
inline const absl::Status& AsStatus(const absl::Status& status) {
  return status;
}
template <typename T>
const absl::Status& AsStatus(const absl::StatusOr<T>& result) {
  return result.status();
}
}  // namespace status_internal

}  // namespace muster

#define MUSTER_CONCAT_INNER(a, b) a##b
#define MUSTER_CONCAT(a, b) MUSTER_CONCAT_INNER(a, b)

/// Returns from the calling function when `expression` (absl::Status) is not OK.
#define MUSTER_RETURN_IF_ERROR(expression)                                                    \
  do {                                                                                        \
    if (absl::Status muster_status = (expression); !muster_status.ok()) return muster_status; \
  } while (false)

/// As above, with `context` put before the message.
#define MUSTER_RETURN_IF_ERROR_PREPEND(expression, context)             \
  do {                                                                  \
    if (absl::Status muster_status = (expression); !muster_status.ok()) \
      return ::muster::Annotate(muster_status, context);                \
  } while (false)

/// Assigns the value of `expression` (absl::StatusOr<T>) to `target`, or returns its status.
#define MUSTER_ASSIGN_OR_RETURN(target, expression) \
  MUSTER_ASSIGN_OR_RETURN_IMPL(MUSTER_CONCAT(muster_result_, __LINE__), target, expression)
#define MUSTER_ASSIGN_OR_RETURN_IMPL(result, target, expression) \
  auto result = (expression);                                    \
  if (!result.ok()) return std::move(result).status();           \
  target = *std::move(result)
