#include "scaler/core/orders.h"

namespace muster::scaler {

std::string ActionName(const Order& order) {
  if (const auto* pause = std::get_if<SetPaused>(&order)) {
    return pause->paused ? "pause-policy" : "resume-policy";
  }
  return std::visit(
      [](const auto& each) -> std::string {
        if constexpr (requires { each.kAction; }) return std::string(each.kAction);
        return "";
      },
      order);
}

std::string TargetOf(const Order& order) {
  if (std::holds_alternative<ScaleWorkers>(order)) return "workers";
  return std::visit(
      [](const auto& each) -> std::string {
        if constexpr (requires { each.node; }) return each.node;
        if constexpr (requires { each.policy; }) return each.policy;
        return "job";
      },
      order);
}

bool IsMasters(const Order& order) {
  return std::visit([]<typename T>(const T&) { return MastersOrder<T>; }, order);
}

}  // namespace muster::scaler
