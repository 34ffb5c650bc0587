#include "tests/support/seeds.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cstdio>
#include <string_view>

#include "tests/support/sanitizers.h"

namespace muster::testing {
namespace {

constexpr uint64_t kMany = 200;
uint64_t given_seeds = 0;  // set before the tests begin

bool TakeArgument(std::string_view argument) {
  constexpr std::string_view kName = "--seeds=";
  if (!argument.starts_with(kName)) return false;
  const std::string_view number = argument.substr(kName.size());
  const auto [end, code] =
      std::from_chars(number.data(), number.data() + number.size(), given_seeds);
  return code == std::errc() && end == number.data() + number.size() && given_seeds > 0;
}

}  // namespace

uint64_t Seeds(uint64_t unless_said) {
  if (given_seeds > 0) return given_seeds;
  return kSanitized && unless_said >= kMany ? unless_said / 20 : unless_said;
}

}  // namespace muster::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (muster::testing::TakeArgument(argv[i])) continue;
    std::fprintf(stderr, "unknown argument '%s'; --seeds=N is known, N from 1\n", argv[i]);
    return 2;
  }
  return RUN_ALL_TESTS();
}
