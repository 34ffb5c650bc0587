#include "tests/sim/machine/trace.h"

#include <xxhash.h>

#include <cstdio>

namespace muster::sim {

void Trace::Take() {
  line_.push_back('\n');
  hash_ = XXH3_64bits_withSeed(line_.data(), line_.size(), hash_);
  ++lines_;
  if (print_) std::fwrite(line_.data(), 1, line_.size(), stdout);
}

}  // namespace muster::sim
