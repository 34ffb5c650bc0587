#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/status.h"
#include "scaler/launcher/supervise.h"

namespace muster {
namespace {

absl::StatusOr<int64_t> ParseNumber(const std::string& flag, const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return absl::InvalidArgumentError(fmt::format("supervise: {} {}: not a number", flag, text));
  }
  return value;
}

absl::StatusOr<std::vector<int>> ParseDescriptors(const std::string& flag,
                                                  const std::string& text) {
  std::vector<int> fds;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    MUSTER_ASSIGN_OR_RETURN(const int64_t fd, ParseNumber(flag, text.substr(begin, end - begin)));
    fds.push_back(static_cast<int>(fd));
    begin = end + 1;
  }
  return fds;
}

absl::Status SetNumber(const std::string& flag, int64_t number, SuperviseOptions* options) {
  if (flag == "--control-fd") {
    options->control_fd = static_cast<int>(number);
  } else if (flag == "--listen-fd") {
    options->listen_fd = static_cast<int>(number);
  } else if (flag == "--node-start") {
    options->start = static_cast<uint32_t>(number);
  } else if (flag == "--life-fd") {
    options->life_fd = static_cast<int>(number);
  } else if (flag == "--held-fd") {
    options->held_fd = static_cast<int>(number);
  } else if (flag == "--parent-pid") {
    options->parent_pid = static_cast<pid_t>(number);
  } else if (flag == "--memory-limit") {
    options->memory_limit_bytes = static_cast<uint64_t>(number);
  } else if (flag == "--log-bytes") {
    options->log_bytes_max = static_cast<uint64_t>(number);
  } else if (flag == "--stop-timeout-ms") {
    options->stop_timeout = std::chrono::milliseconds(number);
  } else {
    return absl::InvalidArgumentError(fmt::format("supervise: unknown flag {}", flag));
  }
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
      --i;  // it has no value
      continue;
    }
    if (i + 1 >= arguments.size()) {
      return absl::InvalidArgumentError(fmt::format("supervise: {} needs a value", flag));
    }
    const std::string& value = arguments[i + 1];
    if (flag == "--name") {
      options.name = value;
    } else if (flag == "--log") {
      options.log_path = value;
    } else if (flag == "--cwd") {
      options.working_directory = value;
    } else if (flag == "--pass-fds") {
      MUSTER_ASSIGN_OR_RETURN(options.pass_fds, ParseDescriptors(flag, value));
    } else if (flag == "--cgroup-fds") {
      MUSTER_ASSIGN_OR_RETURN(options.cgroup_fds, ParseDescriptors(flag, value));
    } else {
      MUSTER_ASSIGN_OR_RETURN(const int64_t number, ParseNumber(flag, value));
      MUSTER_RETURN_IF_ERROR(SetNumber(flag, number, &options));
    }
  }
  if (i + 1 >= arguments.size()) {
    return absl::InvalidArgumentError(
        "supervise: no command; write it after --, as in: muster supervise --name x -- sleep 1");
  }
  options.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, arguments.end());
  return options;
}

std::vector<std::string> SuperviseArguments(const SuperviseOptions& options) {
  std::vector<std::string> arguments = {"--name",
                                        options.name,
                                        "--control-fd",
                                        std::to_string(options.control_fd),
                                        "--listen-fd",
                                        std::to_string(options.listen_fd),
                                        "--node-start",
                                        std::to_string(options.start),
                                        "--life-fd",
                                        std::to_string(options.life_fd),
                                        "--held-fd",
                                        std::to_string(options.held_fd),
                                        "--pass-fds",
                                        fmt::format("{}", fmt::join(options.pass_fds, ",")),
                                        "--cgroup-fds",
                                        fmt::format("{}", fmt::join(options.cgroup_fds, ",")),
                                        "--memory-limit",
                                        std::to_string(options.memory_limit_bytes),
                                        "--parent-pid",
                                        std::to_string(options.parent_pid),
                                        "--log",
                                        options.log_path,
                                        "--log-bytes",
                                        std::to_string(options.log_bytes_max),
                                        "--cwd",
                                        options.working_directory,
                                        "--stop-timeout-ms",
                                        std::to_string(options.stop_timeout.count())};
  if (options.keep_descendants) arguments.push_back("--keep-descendants");
  arguments.push_back("--");
  arguments.insert(arguments.end(), options.command.begin(), options.command.end());
  return arguments;
}

}  // namespace muster
