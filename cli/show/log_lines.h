#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

/// Logs of nodes as `muster logs` shows them. Pure.
namespace muster {

enum class LogForm : uint8_t {
  kAsItIs,    // as it comes
  kLines,     // line by line
  kWithNode,  // "[worker-0] line"
  kJson,      // one object a line
};

/// The log of one node, which comes in pieces. Not thread-safe.
class LogLines {
 public:
  LogLines(std::string node, LogForm form) : node_(std::move(node)), form_(form) {}

  /// What is shown of the next piece. A line that is not yet whole waits for its rest, unless the
  /// log is shown as it comes.
  std::string Take(std::string_view piece);
  /// The log has ended: the last line, if it has no end.
  std::string Finish();

 private:
  std::string Shown(std::string_view line) const;

  std::string node_;
  LogForm form_;
  std::string rest_;
};

}  // namespace muster
