#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace muster {
namespace {

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

std::shared_ptr<spdlog::logger> MakeLogger(std::string_view name, LogLevel lowest) {
  auto logger = std::make_shared<spdlog::logger>(std::string(name),
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %n: %v");
  logger->set_level(ToSpdlog(lowest));
  logger->flush_on(spdlog::level::debug);
  return logger;
}

// The process has one log stream, so a logger as an argument of every constructor would gain
// nothing.
std::shared_ptr<spdlog::logger>& Logger() {
  static std::shared_ptr<spdlog::logger> logger = MakeLogger("muster", LogLevel::kWarning);
  return logger;
}

}  // namespace

void InitLogging(std::string_view process_name, LogLevel lowest) {
  Logger() = MakeLogger(process_name, lowest);
}

void LogLine(LogLevel level, std::string_view text) {
  Logger()->log(ToSpdlog(level), text);
}

}  // namespace muster
