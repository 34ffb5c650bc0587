#pragma once

#include <string>

#include "scaler/model/model.h"

/// What the scaler's events say, in words. Pure.
namespace muster::steer {

/// "1.5 GiB", "12 records/s", "25 %", "3.5 s"; "-" for a number that is not defined.
std::string FigureText(double value, const std::string& unit);

/// "memory 256 MiB -> 384 MiB, 1 -> 2 cores"; what is on one side only is shown as it is there.
std::string ChangeText(const scaler::rest::Event& event);

/// "restart ps-0, memory 256 MiB -> 384 MiB (out-of-memory): the kernel killed it", without the
/// target where the reader sees it already.
std::string EventWords(const scaler::rest::Event& event);

/// One line of the timeline: "2026-01-31T12:34:56.789Z  #12 decision ps-0  restart ...".
std::string EventLine(const scaler::rest::Event& event);

/// What `muster explain` prints.
std::string ExplanationText(const scaler::rest::Explanation& explanation);

}  // namespace muster::steer
