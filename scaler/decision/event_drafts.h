#pragma once

#include <map>
#include <optional>
#include <string>

#include "scaler/model/model.h"
#include "scaler/policy/arbiter.h"
#include "scaler/policy/policy.h"

/// Events (docs/rest.md) as they are before they have an id: from ends, decisions and figures.
namespace muster::scaler {

// Evidence that an outcome is measured against later, also by another process than the one that
// wrote it.
/// The start number of the node that a decision is about.
inline constexpr const char* kStartFigure = "start";
/// Of an order on a node that `muster join` runs: the master carries it out, and tells how it goes.
inline constexpr const char* kJoinedFigure = "joined node";
/// Records trained per second, when it was decided.
inline constexpr const char* kRateFigure = "rate of the job";

/// The value of the figure with this name; none if there is none, or if it is not defined.
std::optional<double> FigureOf(const rest::Event& event, const std::string& name);
/// Adds a figure unless there is one with this name.
void AddFigure(const rest::Evidence& figure, rest::Event* event);

/// "cpus" and "memory_bytes" of limits, "workers" of a count. A resource that is limited neither
/// before nor after is left out; 0 otherwise means: not limited.
struct Change {
  std::map<std::string, double> before;
  std::map<std::string, double> after;
};
Change ChangeOf(const Amount& before, const Amount& after);
/// The action of a policy; nothing when it is none.
std::optional<Action> ActionOf(const std::string& name);

/// The reverse: missing values are 0.
Resources LimitsOf(const std::map<std::string, double>& figures);

/// In the event of an exit: which process it was. The master's event names it, too.
inline constexpr const char* kPidFigure = "pid";
/// A process ended; one sentence says how.
rest::Event ExitEvent(const NodeEnd& end);
/// A decision, or, of one that was refused, a note.
rest::Event DecisionEvent(const Decision& decision, uint64_t cause_id);

}  // namespace muster::scaler
