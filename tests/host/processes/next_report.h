#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <utility>
#include <variant>

namespace muster::testing {

/// Takes the first of `reports`, which is one of this kind. `take` waits a while, and adds to them
/// what has come. Waits up to a bound that only a failing test reaches.
template <typename Report, typename Any, typename Take>
Report NextReport(std::deque<Any>* reports, const Take& take) {
  for (int i = 0; i < 100 && reports->empty(); ++i) take();
  if (reports->empty() || !std::holds_alternative<Report>(reports->front())) {
    ADD_FAILURE() << "no such report came";
    return {};
  }
  Report report = std::get<Report>(std::move(reports->front()));
  reports->pop_front();
  return report;
}

}  // namespace muster::testing
