#include "scaler/model/orders.h"

#include <algorithm>

namespace muster::scaler {
namespace {

template <typename T>
void AddAction(std::vector<ActionAbout>* all) {
  const bool known = std::ranges::find(*all, T::kAbout.name, &ActionAbout::name) != all->end();
  if (!known) all->push_back(T::kAbout);
  if constexpr (requires { T::kUndo; }) all->push_back(T::kUndo);
}

template <typename... T>
std::vector<ActionAbout> ActionsOf(const std::variant<T...>*) {
  std::vector<ActionAbout> all;
  (AddAction<T>(&all), ...);
  return all;
}

}  // namespace

const std::vector<ActionAbout>& AllActions() {
  static const auto* const kAll =
      new std::vector<ActionAbout>(ActionsOf(static_cast<const Order*>(nullptr)));
  return *kAll;
}

std::string_view ActionsText() {
  static const auto* const kText = [] {
    auto* const text = new std::string();
    for (const ActionAbout& action : AllActions()) {
      *text += text->empty() ? "" : ", ";
      *text += action.name;
    }
    *text += "; empty: none";
    return text;
  }();
  return *kText;
}

std::string_view NameToday(std::string_view action) {
  if (action == "relaunch") return RestartNode::kAbout.name;
  if (action == "set-limits") return ResizeNode::kAbout.name;
  if (action == "set-workers") return ScaleWorkers::kAbout.name;
  return action;
}

ActionAbout AboutAction(std::string_view name) {
  const auto found = std::ranges::find(AllActions(), name, &ActionAbout::name);
  return found == AllActions().end() ? ActionAbout() : *found;
}

std::string ActionName(const Order& order) {
  const auto* const pause = std::get_if<SetPaused>(&order);
  if (pause != nullptr && !pause->paused) return std::string(SetPaused::kUndo.name);
  return std::visit([](const auto& each) { return std::string(each.kAbout.name); }, order);
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
