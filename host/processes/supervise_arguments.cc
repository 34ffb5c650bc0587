#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <concepts>

#include "base/status.h"
#include "host/processes/supervise.h"

namespace muster {
namespace {

/// Visits every flag that has a value, with the place of the value. Reading and writing both use
/// it.
template <typename Visit, typename Options>
void EachFlag(Options& options, Visit visit) {
  visit("--name", options.name);
  visit("--control-fd", options.control_fd);
  visit("--listen-fd", options.listen_fd);
  visit("--node-start", options.start);
  visit("--life-fd", options.life_fd);
  visit("--held-fd", options.held_fd);
  visit("--pass-fds", options.pass_fds);
  visit("--cgroup-fds", options.cgroup_fds);
  visit("--memory-limit", options.memory_limit_bytes);
  visit("--parent-pid", options.parent_pid);
  visit("--log", options.log_path);
  visit("--log-bytes", options.log_bytes_max);
  visit("--cwd", options.working_directory);
  visit("--stop-timeout-ms", options.stop_timeout);
}

std::string TextOf(const std::string& value) {
  return value;
}
std::string TextOf(std::integral auto value) {
  return std::to_string(value);
}
std::string TextOf(const std::vector<int>& value) {
  return fmt::format("{}", fmt::join(value, ","));
}
std::string TextOf(std::chrono::milliseconds value) {
  return std::to_string(value.count());
}

absl::Status ParseFlag(const std::string&, const std::string& text, std::string* value) {
  *value = text;
  return absl::OkStatus();
}
absl::Status ParseFlag(const std::string& flag, const std::string& text,
                       std::integral auto* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (error == std::errc() && end == text.data() + text.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("supervise: {}: '{}' is not a number", flag, text));
}
absl::Status ParseFlag(const std::string& flag, const std::string& text, std::vector<int>* value) {
  value->clear();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    MUSTER_RETURN_IF_ERROR(
        ParseFlag(flag, text.substr(begin, end - begin), &value->emplace_back()));
    begin = end + 1;
  }
  return absl::OkStatus();
}
absl::Status ParseFlag(const std::string& flag, const std::string& text,
                       std::chrono::milliseconds* value) {
  int64_t count = 0;
  MUSTER_RETURN_IF_ERROR(ParseFlag(flag, text, &count));
  *value = std::chrono::milliseconds(count);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SuperviseOptions> ParseSuperviseArguments(
    const std::vector<std::string>& arguments) {
  SuperviseOptions options;
  size_t i = 0;
  for (; i < arguments.size() && arguments[i] != "--"; i += 2) {
    const std::string& flag = arguments[i];
    if (flag == "--keep-descendants") {
      options.keep_descendants = true;
      --i;  // this flag has no value
      continue;
    }
    if (i + 1 >= arguments.size()) {
      return absl::InvalidArgumentError(fmt::format("supervise: {} needs a value", flag));
    }
    absl::Status parsed =
        absl::InvalidArgumentError(fmt::format("supervise: unknown flag {}", flag));
    EachFlag(options, [&](const char* name, auto& value) {
      if (flag == name) parsed = ParseFlag(flag, arguments[i + 1], &value);
    });
    MUSTER_RETURN_IF_ERROR(parsed);
  }
  if (i + 1 >= arguments.size()) {
    return absl::InvalidArgumentError(
        "supervise: no command; write it after --, as in: muster supervise --name x -- sleep 1");
  }
  options.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, arguments.end());
  return options;
}

std::vector<std::string> SuperviseArguments(const SuperviseOptions& options) {
  std::vector<std::string> arguments;
  EachFlag(options, [&](const char* name, const auto& value) {
    arguments.insert(arguments.end(), {name, TextOf(value)});
  });
  if (options.keep_descendants) arguments.push_back("--keep-descendants");
  arguments.push_back("--");
  arguments.insert(arguments.end(), options.command.begin(), options.command.end());
  return arguments;
}

}  // namespace muster
