#pragma once

#include <string>

#include "scaler/model/model.h"

/// The scaler's events in words. Pure.
namespace muster::steer {

/// "1.5 GiB", "12 records/s", "25 %", "3.5 s". "-" for an undefined number.
std::string FigureText(double value, const std::string& unit);

/// "memory 256 MiB -> 384 MiB, 1 -> 2 cores". A figure that is only on one side is shown by itself.
std::string ChangeText(const scaler::rest::Event& event);

/// "restart ps-0, memory 256 MiB -> 384 MiB (out-of-memory): the kernel killed it". The target is
/// left out if the reader sees it anyway.
std::string EventWords(const scaler::rest::Event& event);

/// One line of the timeline: "2026-01-31T12:34:56.789Z  #12 decision ps-0  restart ...".
std::string EventLine(const scaler::rest::Event& event);

/// The output of `muster explain`.
std::string ExplanationText(const scaler::rest::Explanation& explanation);

}  // namespace muster::steer
