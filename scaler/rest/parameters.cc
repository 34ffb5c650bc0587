#include "scaler/rest/parameters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include "base/text.h"
#include "scaler/model/model_json.h"
#include "scaler/rest/internal/shown.h"

namespace muster::scaler::rest {
namespace {

std::string_view ToText(ParamIn in) {
  return in == ParamIn::kPath ? "path" : in == ParamIn::kQuery ? "query" : "body";
}

FieldError Wrong(const Param& param, std::string message) {
  return {std::string(ToText(param.in)), std::string(param.name), std::move(message)};
}

/// "from 1 to 100".
std::string Bounds(const Param& param) {
  return fmt::format("from {} to {}", param.min, param.max);
}

Problem InvalidFields(std::vector<FieldError> errors) {
  std::string detail;
  for (const FieldError& error : errors) {
    detail += fmt::format("{}{} ({}): {}", detail.empty() ? "" : "; ", error.field, error.in,
                          error.message);
  }
  return {.status = 422, .code = "invalid-field", .detail = detail, .errors = std::move(errors)};
}

Problem Malformed(std::string detail) {
  return {.status = 400, .code = "malformed", .detail = std::move(detail), .errors = {}};
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// None if a % is not followed by two hexadecimal digits.
std::optional<std::string> Decode(std::string_view text, bool plus_is_blank) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = HexDigit(text[i + 1]);
      const int low = HexDigit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      decoded.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    } else {
      decoded.push_back(plus_is_blank && text[i] == '+' ? ' ' : text[i]);
    }
  }
  return decoded;
}

/// Counts characters, not bytes. `text` must be valid UTF-8.
size_t Characters(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }));
}

bool IsName(std::string_view text) {
  constexpr size_t kNameBytesMax = 63;
  if (text.empty() || text.size() > kNameBytesMax || text[0] < 'a' || text[0] > 'z') return false;
  return std::ranges::all_of(
      text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}
constexpr std::string_view kNamePattern = "^[a-z][a-z0-9-]{0,62}$";

/// True for three numbers with slashes between them.
bool IsShardId(std::string_view text) {
  // The most digits of dataset, epoch and index, so that every number fits into 32, 32 and 64 bits.
  constexpr size_t kDigitsMax[] = {5, 9, 18};
  size_t numbers = 0;
  for (size_t begin = 0; begin <= text.size(); ++numbers) {
    const size_t end = std::min(text.find('/', begin), text.size());
    const std::string_view number = text.substr(begin, end - begin);
    const bool digits = std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; });
    if (numbers == std::size(kDigitsMax) || number.empty() || number.size() > kDigitsMax[numbers] ||
        !digits) {
      return false;
    }
    begin = end + 1;
  }
  return numbers == std::size(kDigitsMax);
}
constexpr std::string_view kShardIdPattern = "^[0-9]{1,5}/[0-9]{1,9}/[0-9]{1,18}$";

std::optional<std::string> CheckText(const Param& param, std::string_view text) {
  if (ValidUtf8(text) != text) return "is not valid UTF-8";
  switch (param.kind) {
    case ParamKind::kName:
      if (IsName(text)) return std::nullopt;
      return fmt::format("'{}' is no name: 1 to 63 of a-z, 0-9 and '-', the first a letter",
                         Shown(text));
    case ParamKind::kChoice:
      if (std::ranges::count(param.choices, text) > 0) return std::nullopt;
      return fmt::format("'{}' is none of {}", Shown(text), fmt::join(param.choices, ", "));
    default: {
      const auto size = static_cast<double>(Characters(text));
      if (size >= param.min && size <= param.max) return std::nullopt;
      return fmt::format("has {} characters, must have {}", size, Bounds(param));
    }
  }
}

std::optional<FieldError> TakeInteger(const Param& param, std::string_view text,
                                      Arguments* arguments) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = end == text.data() + text.size() && !text.empty();
  const bool fits = error == std::errc() && static_cast<double>(value) >= param.min &&
                    static_cast<double>(value) <= param.max;
  if (!whole || !fits) {
    return Wrong(param, fmt::format("'{}' is no whole number {}", Shown(text), Bounds(param)));
  }
  arguments->Set(param.name, value);
  return std::nullopt;
}

std::optional<FieldError> TakeChoices(const Param& param, std::string_view text,
                                      Arguments* arguments) {
  std::vector<std::string> chosen;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view choice = text.substr(begin, end - begin);
    if (auto wrong = CheckText({.kind = ParamKind::kChoice, .choices = param.choices}, choice)) {
      return Wrong(param, *wrong);
    }
    if (std::ranges::count(chosen, choice) > 0) return Wrong(param, "names one twice");
    chosen.emplace_back(choice);
    begin = end + 1;
  }
  arguments->Set(param.name, std::move(chosen));
  return std::nullopt;
}

std::optional<FieldError> TakeJsonNumber(const Param& param, const nlohmann::json& json,
                                         Arguments* arguments) {
  const bool whole_wanted = param.kind == ParamKind::kInteger;
  const double value = json.is_number() ? json.get<double>() : 0;
  // 3.0 is an integer for JSON Schema, too.
  if (!json.is_number() || (whole_wanted && value != std::floor(value)) || value < param.min ||
      value > param.max) {
    return Wrong(param, fmt::format("{} is no {} {}", Shown(Dump(json)),
                                    whole_wanted ? "whole number" : "number", Bounds(param)));
  }
  if (whole_wanted) {
    arguments->Set(param.name, static_cast<uint64_t>(value));
  } else {
    arguments->Set(param.name, value);
  }
  return std::nullopt;
}

std::optional<FieldError> TakeShardIds(const Param& param, const nlohmann::json& json,
                                       Arguments* arguments) {
  if (!json.is_array() || static_cast<double>(json.size()) < param.min ||
      static_cast<double>(json.size()) > param.max) {
    return Wrong(param, fmt::format("must be an array of {} shard ids", Bounds(param)));
  }
  std::vector<std::string> ids;
  for (const nlohmann::json& id : json) {
    if (!id.is_string() || !IsShardId(id.get_ref<const std::string&>())) {
      return Wrong(param,
                   fmt::format("{} is no shard id as \"0/2/17\": dataset, epoch, index, from 0",
                               Shown(Dump(id))));
    }
    ids.push_back(id);
  }
  arguments->Set(param.name, std::move(ids));
  return std::nullopt;
}

std::optional<FieldError> TakeJson(const Param& param, const nlohmann::json& json,
                                   Arguments* arguments) {
  switch (param.kind) {
    case ParamKind::kInteger:
    case ParamKind::kNumber:
      return TakeJsonNumber(param, json, arguments);
    case ParamKind::kShardIds:
      return TakeShardIds(param, json, arguments);
    default:
      if (!json.is_string()) return Wrong(param, "must be a text");
      return TakeText(param, json.get_ref<const std::string&>(), arguments);
  }
}

/// The body as JSON. If it is not a JSON object, the result is null and `wrong` says why.
nlohmann::json ParseObject(std::string_view body, std::string* wrong) {
  constexpr int kDepthMax = 8;
  std::set<std::string> names;
  const auto watch = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    if (depth > kDepthMax) *wrong = fmt::format("is nested deeper than {}", kDepthMax);
    if (event == nlohmann::json::parse_event_t::key && depth == 1 &&
        !names.insert(parsed.get<std::string>()).second) {
      *wrong = fmt::format("has the field '{}' twice", Shown(parsed.get<std::string>()));
    }
    return true;
  };
  nlohmann::json json = nlohmann::json::parse(body, watch, /*allow_exceptions=*/false);
  if (json.is_discarded()) *wrong = "is no valid JSON";
  if (wrong->empty() && !json.is_object()) *wrong = "is no JSON object";
  return json;
}

}  // namespace

std::optional<uint64_t> Arguments::Integer(std::string_view name) const {
  const auto at = values_.find(name);
  if (at == values_.end()) return std::nullopt;
  return std::get<uint64_t>(at->second);
}

std::optional<double> Arguments::Number(std::string_view name) const {
  const auto at = values_.find(name);
  if (at == values_.end()) return std::nullopt;
  return std::get<double>(at->second);
}

std::string Arguments::Text(std::string_view name) const {
  const auto at = values_.find(name);
  return at == values_.end() ? "" : std::get<std::string>(at->second);
}

std::vector<std::string> Arguments::Texts(std::string_view name) const {
  const auto at = values_.find(name);
  if (at == values_.end()) return {};
  return std::get<std::vector<std::string>>(at->second);
}

std::variant<Target, Problem> ParseTarget(std::string_view text) {
  if (!text.starts_with('/')) {
    return Malformed(fmt::format("the request's target '{}' is no path", Shown(text)));
  }
  Target target;
  const size_t mark = text.find('?');
  std::string_view path = text.substr(1, mark == std::string_view::npos ? mark : mark - 1);
  if (path.ends_with('/')) path.remove_suffix(1);
  for (size_t begin = 0; begin <= path.size() && !path.empty();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    auto segment = Decode(path.substr(begin, end - begin), /*plus_is_blank=*/false);
    if (!segment) {
      return Malformed(
          fmt::format("the path '{}' has a '%' without two hexadecimal digits", Shown(path)));
    }
    target.segments.push_back(*std::move(segment));
    begin = end + 1;
  }
  if (mark == std::string_view::npos) return target;
  const std::string_view query = text.substr(mark + 1);
  for (size_t begin = 0; begin <= query.size();) {
    const size_t end = std::min(query.find('&', begin), query.size());
    const std::string_view pair = query.substr(begin, end - begin);
    begin = end + 1;
    if (pair.empty()) continue;
    const size_t equals = std::min(pair.find('='), pair.size());
    auto name = Decode(pair.substr(0, equals), /*plus_is_blank=*/true);
    auto value =
        Decode(equals < pair.size() ? pair.substr(equals + 1) : "", /*plus_is_blank=*/true);
    if (!name || !value) {
      return Malformed(
          fmt::format("the query's '{}' has a '%' without two hexadecimal digits", Shown(pair)));
    }
    target.query.emplace_back(*std::move(name), *std::move(value));
  }
  return target;
}

std::optional<FieldError> TakeText(const Param& param, std::string_view text,
                                   Arguments* arguments) {
  if (param.kind == ParamKind::kInteger) return TakeInteger(param, text, arguments);
  if (param.kind == ParamKind::kChoices) return TakeChoices(param, text, arguments);
  if (auto wrong = CheckText(param, text)) return Wrong(param, *std::move(wrong));
  arguments->Set(param.name, std::string(text));
  return std::nullopt;
}

std::optional<Problem> TakeQuery(std::span<const Param> params, const Target& target,
                                 Arguments* arguments) {
  std::vector<FieldError> errors;
  for (const auto& [name, value] : target.query) {
    const auto param = std::ranges::find_if(
        params, [&](const Param& p) { return p.in == ParamIn::kQuery && p.name == name; });
    if (param == params.end()) {
      errors.push_back({"query", Shown(name), "is not among the parameters of this route"});
    } else if (arguments->Has(name)) {
      errors.push_back(Wrong(*param, "is there twice"));
    } else if (auto wrong = TakeText(*param, value, arguments)) {
      errors.push_back(*std::move(wrong));
    }
    constexpr size_t kErrorsMax = 8;
    if (errors.size() == kErrorsMax) break;
  }
  for (const Param& param : params) {
    if (param.in != ParamIn::kQuery || arguments->Has(param.name)) continue;
    if (param.absent) arguments->Set(param.name, *param.absent);
    if (param.required && errors.empty()) errors.push_back(Wrong(param, "is missing"));
  }
  if (!errors.empty()) return InvalidFields(std::move(errors));
  return std::nullopt;
}

std::optional<Problem> TakeBody(std::span<const Param> params,
                                std::span<const std::string_view> any_of, std::string_view body,
                                Arguments* arguments) {
  if (body.empty()) {
    return Malformed("the body is empty: send a JSON object, {} at least");
  }
  std::string not_taken;
  const nlohmann::json json = ParseObject(body, &not_taken);
  if (!not_taken.empty()) return Malformed(fmt::format("the body {}", not_taken));
  std::vector<FieldError> errors;
  for (const auto& [name, value] : json.items()) {
    const auto param = std::ranges::find_if(
        params, [&name](const Param& p) { return p.in == ParamIn::kBody && p.name == name; });
    if (param == params.end()) {
      errors.push_back({"body", Shown(name), "is not among the fields of this action"});
    } else if (auto wrong = TakeJson(*param, value, arguments)) {
      errors.push_back(*std::move(wrong));
    }
    constexpr size_t kErrorsMax = 8;
    if (errors.size() == kErrorsMax) break;
  }
  for (const Param& param : params) {
    if (param.in == ParamIn::kBody && param.required && !json.contains(param.name)) {
      errors.push_back(Wrong(param, "is missing"));
    }
  }
  const bool has_one =
      std::ranges::any_of(any_of, [&](std::string_view name) { return arguments->Has(name); });
  if (errors.empty() && !any_of.empty() && !has_one) {
    const std::string names = fmt::format("{}", fmt::join(any_of, ", "));
    errors.push_back({"body", names, "at least one of them must be there"});
  }
  if (!errors.empty()) return InvalidFields(std::move(errors));
  return std::nullopt;
}

nlohmann::json SchemaOf(const Param& param) {
  switch (param.kind) {
    case ParamKind::kInteger: {
      nlohmann::json schema = {{"type", "integer"},
                               {"minimum", static_cast<uint64_t>(param.min)},
                               {"maximum", static_cast<uint64_t>(param.max)}};
      if (param.absent) schema["default"] = *param.absent;
      return schema;
    }
    case ParamKind::kNumber:
      return {{"type", "number"}, {"minimum", param.min}, {"maximum", param.max}};
    case ParamKind::kName:
      return {{"type", "string"}, {"pattern", kNamePattern}};
    case ParamKind::kChoice:
      return {{"type", "string"}, {"enum", param.choices}};
    case ParamKind::kChoices:
      return {{"type", "array"},
              {"items", {{"type", "string"}, {"enum", param.choices}}},
              {"minItems", 1},
              {"uniqueItems", true}};
    case ParamKind::kShardIds:
      return {{"type", "array"},
              {"items", {{"type", "string"}, {"pattern", kShardIdPattern}}},
              {"minItems", static_cast<uint64_t>(param.min)},
              {"maxItems", static_cast<uint64_t>(param.max)}};
    case ParamKind::kText:
      break;
  }
  return {{"type", "string"},
          {"minLength", static_cast<uint64_t>(param.min)},
          {"maxLength", static_cast<uint64_t>(param.max)}};
}

nlohmann::json BodySchema(std::span<const Param> params, std::span<const std::string_view> any_of) {
  nlohmann::json schema = {{"type", "object"},
                           {"properties", nlohmann::json::object()},
                           {"additionalProperties", false}};
  for (const Param& param : params) {
    if (param.in != ParamIn::kBody) continue;
    nlohmann::json field = SchemaOf(param);
    field["description"] = param.meaning;
    schema["properties"][std::string(param.name)] = std::move(field);
    if (param.required) schema["required"].push_back(param.name);
  }
  for (const std::string_view name : any_of) {
    schema["anyOf"].push_back({{"required", nlohmann::json::array({name})}});
  }
  return schema;
}

}  // namespace muster::scaler::rest
