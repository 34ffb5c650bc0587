#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace text {

/// The arguments of a program, as pairs `--name value`. Each is taken once; what is left at the end
/// is an error. Not thread-safe.
class Arguments {
 public:
  /// `words` begins after the program's name.
  explicit Arguments(std::span<const char* const> words);

  /// True if --help is among them.
  bool help() const { return help_; }
  /// The value of --name, or `otherwise`.
  std::string Text(const std::string& name, std::string otherwise);
  uint64_t Number(const std::string& name, uint64_t otherwise, uint64_t low, uint64_t high);
  float Real(const std::string& name, float otherwise, float low, float high);
  /// The first thing that is wrong: a name that nobody took, or a value outside its bounds.
  std::optional<std::string> Error() const;

 private:
  void Wrong(std::string error);
  std::optional<std::string> Take(const std::string& name);

  std::map<std::string, std::string> values_;
  std::optional<std::string> error_;
  bool help_ = false;
};

}  // namespace text
