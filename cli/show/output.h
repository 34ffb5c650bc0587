#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"

namespace muster {

enum class OutputFormat : uint8_t { kText, kJson };

/// The exit codes of all verbs. docs/cli.md lists them.
inline constexpr int kExitSucceeded = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;  // wrong arguments, a bad job file, bad input data
inline constexpr int kExitDrained = 3;
inline constexpr int kExitCancelled = 4;
inline constexpr int kExitUnreachable = 5;
inline constexpr int kExitWrong = 6;  // `muster verify`: something is lost, doubled or wrong

/// Prints data to stdout.
void PrintData(std::string_view text);
/// How many columns of the terminal a line may have. None if `fd` is not a terminal, or is a very
/// narrow one.
std::optional<size_t> ColumnsOf(int fd);
/// Prints "muster: message" to stderr, if an answer needs an explanation.
void PrintNote(std::string_view message);
/// Prints "muster: message" to stderr, and returns `exit_code`.
int PrintError(std::string_view message, int exit_code);
/// The same, with the exit code of the status: unreachable, usage or failed.
int PrintError(const absl::Status& status);

}  // namespace muster
