#pragma once

#include <map>
#include <optional>
#include <string>

#include "scaler/model/model.h"
#include "scaler/policy/arbiter.h"
#include "scaler/policy/policy.h"

/// Events (docs/rest.md) as they are before they have an id: from ends, decisions and figures.
namespace muster::scaler {

// Names of figures that an outcome is measured against later, perhaps by another process than the
// one that wrote them.
/// The start number of the node that a decision is about.
inline constexpr const char* kStartFigure = "start";
/// Marks an order on a node that `muster join` runs. The master carries such an order out, and
/// tells how it goes.
inline constexpr const char* kJoinedFigure = "joined node";
/// Records trained per second at the time of the decision.
inline constexpr const char* kRateFigure = "rate of the job";

/// The value of the figure with this name; none if there is none, or if it is not defined.
std::optional<double> FigureOf(const rest::Event& event, const std::string& name);
/// Adds a figure unless there is one with this name.
void AddFigure(const rest::Evidence& figure, rest::Event* event);

/// Limits become "cpus" and "memory_bytes", and a count becomes "workers". A resource that is
/// limited neither before nor after is left out. Otherwise 0 means that it is not limited.
struct Change {
  std::map<std::string, double> before;
  std::map<std::string, double> after;
};
Change ChangeOf(const Amount& before, const Amount& after);
/// The action with this name; none if policies have no such action.
std::optional<Action> ActionOf(const std::string& name);

/// The reverse of ChangeOf() for limits. Missing values are 0.
Resources LimitsOf(const std::map<std::string, double>& figures);

/// Names the process in the event of an exit. The master's event of the exit names it, too.
inline constexpr const char* kPidFigure = "pid";
/// A process ended; one sentence says how.
rest::Event ExitEvent(const NodeEnd& end);
/// The event of a decision. If the proposal was refused, it is a note.
rest::Event DecisionEvent(const Decision& decision, uint64_t cause_id);

}  // namespace muster::scaler
