#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <ratio>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "proto/fields/fields.h"

/// Makes metrics from the list of a struct's fields (proto/fields/fields.h). So a new figure
/// becomes a metric without further code. Pure.
namespace muster::scaler::rest {

/// One number of a struct: its name, such as "muster_server_service_seconds_total", its type, its
/// meaning, and its present value. The value is none if it is not known.
struct MetricField {
  std::string name;
  bool gauge = false;
  std::string help;
  std::optional<double> value;
};

/// Every number of `T`, in the order of its list, whether it is known or not. So entries of two
/// values of one type correspond by their position. Members that are not numbers are left out. A
/// name consists of `prefix` and the field's name, with `_seconds` for `_us`. `_total` is added
/// unless the field is a gauge (fields::About). HELP is the name in words and the field's
/// description.
class MetricFields {
 public:
  template <fields::Listed T>
  static std::vector<MetricField> Of(std::string_view prefix, const T& value) {
    MetricFields metrics(prefix);
    T::Fields(metrics, value);
    return std::move(metrics.metrics_);
  }

  template <typename T>
  void operator()(uint32_t /*number*/, std::string_view name, const T& value,
                  const fields::About& about = {}) {
    if constexpr (fields::kIsOptional<T>) {
      if constexpr (kIsFigure<typename T::value_type>) {
        Add(name, about, value ? std::optional(Number(*value)) : std::nullopt);
      }
    } else if constexpr (kIsFigure<T>) {
      Add(name, about, Number(value));
    }
  }
  void Choice(uint32_t /*number*/, const char* /*name*/, const std::string& /*value*/,
              fields::Choices, const fields::About& /*about*/ = {}) {}

 private:
  template <typename T>
  static constexpr bool kIsFigure = (std::unsigned_integral<T> && !std::same_as<T, bool>) ||
                                    std::same_as<T, double> || fields::kIsDuration<T>;

  explicit MetricFields(std::string_view prefix) : prefix_(prefix) {}

  template <typename T>
  static double Number(const T& value) {
    if constexpr (fields::kIsDuration<T>) {
      static_assert(std::same_as<typename T::period, std::micro>);
      return static_cast<double>(value.count());
    } else {
      return static_cast<double>(value);
    }
  }

  static std::string Help(std::string_view name, std::string_view says) {
    std::string help(name);
    std::ranges::replace(help, '_', ' ');
    help[0] = static_cast<char>(help[0] - 'a' + 'A');  // names begin with a lower case letter
    if (!says.empty()) help.append(": ").append(says);
    return help + ".";
  }

  void Add(std::string_view name, const fields::About& about, std::optional<double> value) {
    constexpr std::string_view kMicros = "_us";
    constexpr double kMicrosPerSecond = 1e6;
    const bool time = name.ends_with(kMicros);
    if (time) name.remove_suffix(kMicros.size());
    MetricField metric{
        .name = prefix_, .gauge = about.gauge, .help = Help(name, about.says), .value = value};
    metric.name.append(name);
    if (time) {
      metric.name += "_seconds";
      if (value.has_value()) metric.value = *value / kMicrosPerSecond;
    }
    if (!about.gauge) metric.name += "_total";
    metrics_.push_back(std::move(metric));
  }

  std::string prefix_;
  std::vector<MetricField> metrics_;
};

}  // namespace muster::scaler::rest
