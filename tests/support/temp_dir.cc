#include "tests/support/temp_dir.h"

#include <filesystem>

#include "base/file.h"

namespace muster::testing {

TempDir::TempDir() {
  path_ = MakePrivateFolder(TemporaryFolder(), "muster").value();
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace muster::testing
