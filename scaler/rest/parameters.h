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

/// Describes what a route takes. Requests are checked against this description, and /openapi.json
/// is written from it. Pure.
namespace muster::scaler::rest {

enum class ParamIn { kPath, kQuery, kBody };

enum class ParamKind {
  kInteger,  // [min, max]
  kNumber,   // [min, max]
  kText,     // min to max characters
  kName,     // name of a node or a policy: [a-z0-9-], begins with a letter
  kChoice,   // one of `choices`
  kChoices,  // some of `choices`, with commas between them
  kShardIds  // only in the body: an array of min to max texts such as "0/2/17"
};

/// The largest whole number that JSON and JavaScript keep exact.
inline constexpr double kNumberMax = 9007199254740991;
/// The name of the argument that says why an order is given.
inline constexpr std::string_view kReason = "reason";

struct Param {
  std::string_view name;
  ParamIn in = ParamIn::kQuery;
  ParamKind kind = ParamKind::kText;
  std::string_view meaning;
  double min = 0;
  double max = 0;
  std::vector<std::string_view> choices = {};
  /// The value of an integer that is absent. /openapi.json shows it.
  std::optional<uint64_t> absent = std::nullopt;
  bool required = false;  // parameters of a path always are
};

/// The checked arguments of one request, by name.
class Arguments {
 public:
  using Value = std::variant<uint64_t, double, std::string, std::vector<std::string>>;

  void Set(std::string_view name, Value value) { values_[std::string(name)] = std::move(value); }
  bool Has(std::string_view name) const { return values_.contains(name); }
  /// None if it is absent. The parameter must have this kind; otherwise it is our bug.
  std::optional<uint64_t> Integer(std::string_view name) const;
  std::optional<double> Number(std::string_view name) const;
  /// "" if it is absent.
  std::string Text(std::string_view name) const;
  std::vector<std::string> Texts(std::string_view name) const;
  const std::map<std::string, Value, std::less<>>& values() const { return values_; }

 private:
  std::map<std::string, Value, std::less<>> values_;
};

/// Path and query of a request's target. Both are decoded.
struct Target {
  std::vector<std::string> segments;
  std::vector<std::pair<std::string, std::string>> query;
};

/// Splits a target such as "/a/b?c=d". One slash at the end of the path is left out.
std::variant<Target, Problem> ParseTarget(std::string_view target);

/// Checks a text of the path or the query, and puts it into `arguments`. If it is wrong, the error
/// says why.
std::optional<FieldError> TakeText(const Param& param, std::string_view text, Arguments* arguments);

/// Checks the whole query. Unknown names and repetitions are errors. Absent integers get their
/// default value.
std::optional<Problem> TakeQuery(std::span<const Param> params, const Target& target,
                                 Arguments* arguments);

/// Checks a JSON object against those `params` that belong to the body. At least one of `any_of`
/// must be present.
std::optional<Problem> TakeBody(std::span<const Param> params,
                                std::span<const std::string_view> any_of, std::string_view body,
                                Arguments* arguments);

/// JSON Schema of a value.
nlohmann::json SchemaOf(const Param& param);
/// JSON Schema of the body. It has those `params` that belong to the body.
nlohmann::json BodySchema(std::span<const Param> params, std::span<const std::string_view> any_of);

}  // namespace muster::scaler::rest
