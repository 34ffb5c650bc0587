#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "scaler/rest/problem.h"

/// What a route takes, described once: requests are checked against it and /openapi.json is written
/// from it. Pure.
namespace muster::scaler::rest {

enum class ParamIn { kPath, kQuery, kBody };

enum class ParamKind {
  kInteger,  // [min, max]
  kNumber,   // [min, max]
  kText,     // of min to max characters
  kName,     // of a node or a policy: text of [a-z0-9-] that begins with a letter
  kChoice,   // one of `choices`
  kChoices,  // some of `choices`, apart by commas
  kShardIds  // body only: array of min to max texts "0/2/17"
};

/// Numbers that JSON and JavaScript carry exactly.
inline constexpr double kNumberMax = 9007199254740991;
/// Why an order is given: the argument of that name.
inline constexpr std::string_view kReason = "reason";

struct Param {
  std::string_view name;
  ParamIn in = ParamIn::kQuery;
  ParamKind kind = ParamKind::kText;
  std::string_view meaning;
  double min = 0;
  double max = 0;
  std::vector<std::string_view> choices = {};
  /// What is taken when an integer is absent; shown in /openapi.json.
  std::optional<uint64_t> absent = std::nullopt;
  bool required = false;  // those of a path always are
};

/// The checked arguments of one request, by name.
class Arguments {
 public:
  using Value = std::variant<uint64_t, double, std::string, std::vector<std::string>>;

  void Set(std::string_view name, Value value) { values_[std::string(name)] = std::move(value); }
  bool Has(std::string_view name) const { return values_.contains(name); }
  /// Nothing when absent. The kind must be the parameter's (else: our bug).
  std::optional<uint64_t> Integer(std::string_view name) const;
  std::optional<double> Number(std::string_view name) const;
  /// "" when absent.
  std::string Text(std::string_view name) const;
  std::vector<std::string> Texts(std::string_view name) const;
  const std::map<std::string, Value, std::less<>>& values() const { return values_; }

 private:
  std::map<std::string, Value, std::less<>> values_;
};

/// Path and query of a request's target, decoded.
struct Target {
  std::vector<std::string> segments;
  std::vector<std::pair<std::string, std::string>> query;
};

/// Takes a target "/a/b?c=d" apart; one slash at the end is left out.
std::variant<Target, Problem> ParseTarget(std::string_view target);

/// Checks one text, of the path or the query, and puts it into `arguments`. An error: what is
/// wrong.
std::optional<FieldError> TakeText(const Param& param, std::string_view text, Arguments* arguments);

/// Checks the whole query: unknown names and repetitions are errors; absent integers get their
/// value.
std::optional<Problem> TakeQuery(std::span<const Param> params, const Target& target,
                                 Arguments* arguments);

/// Checks a JSON object against those params that are of the body; `any_of`: at least one of these
/// must be there.
std::optional<Problem> TakeBody(std::span<const Param> params,
                                std::span<const std::string_view> any_of, std::string_view body,
                                Arguments* arguments);

/// JSON Schema of a value.
nlohmann::json SchemaOf(const Param& param);
/// JSON Schema of the body that consists of those params that are of the body.
nlohmann::json BodySchema(std::span<const Param> params, std::span<const std::string_view> any_of);

}  // namespace muster::scaler::rest
