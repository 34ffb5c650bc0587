#pragma once

#include <string_view>

namespace muster::check_internal {
/// Prints file, line, the failed condition and the message to stderr, then aborts.
[[noreturn]] void Fail(const char* file, int line, const char* condition, std::string_view message);
}  // namespace muster::check_internal

/// Aborts when `condition` is false, in every build. For our own bugs only: never for input, files
/// or network data.
#define MUSTER_CHECK(condition) MUSTER_CHECK_MSG(condition, "")
/// The same, with a message (anything that converts to std::string_view). The message is evaluated
/// only on failure.
#define MUSTER_CHECK_MSG(condition, message)                                     \
  do {                                                                           \
    if (!(condition)) [[unlikely]]                                               \
      ::muster::check_internal::Fail(__FILE__, __LINE__, #condition, (message)); \
  } while (false)
