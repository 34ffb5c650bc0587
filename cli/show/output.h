#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"

namespace muster {

enum class OutputFormat : uint8_t { kText, kJson };

/// Exit codes of every verb; docs/cli.md lists them.
inline constexpr int kExitSucceeded = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;  // wrong arguments, a bad job file, bad input data
inline constexpr int kExitDrained = 3;
inline constexpr int kExitCancelled = 4;
inline constexpr int kExitUnreachable = 5;
inline constexpr int kExitWrong = 6;  // verify: something is lost, doubled or wrong

/// Data to stdout.
void PrintData(std::string_view text);
/// How many columns of the terminal a line may have; none: `fd` is no terminal, or a very narrow
/// one.
std::optional<size_t> ColumnsOf(int fd);
/// "muster: message" to stderr, where the answer needs a word of explanation.
void PrintNote(std::string_view message);
/// "muster: message" to stderr; returns `exit_code`.
int PrintError(std::string_view message, int exit_code);
/// As above with the exit code that belongs to the status: unreachable, usage or failed.
int PrintError(const absl::Status& status);

}  // namespace muster
