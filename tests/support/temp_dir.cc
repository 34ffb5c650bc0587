#include "tests/support/temp_dir.h"

#include <cstdlib>
#include <filesystem>

#include "base/check.h"

namespace muster::testing {

// Not by MakePrivateFolder, which tells the observer of files: in tests of power losses, the
// observer itself makes such folders.
TempDir::TempDir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "muster-XXXXXX").string();
  MUSTER_CHECK_MSG(::mkdtemp(pattern.data()) != nullptr, pattern);
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace muster::testing
