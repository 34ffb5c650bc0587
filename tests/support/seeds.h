#pragma once

#include <cstdint>

namespace muster::testing {

/// How many seeds a randomised test shall try: N of the program's argument --seeds=N, or
/// `unless_said` (under a sanitizer, a twentieth of 200 or more). Naming it links the main
/// function that takes the argument.
uint64_t Seeds(uint64_t unless_said);

}  // namespace muster::testing
