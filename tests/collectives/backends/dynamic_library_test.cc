#include "collectives/backends/dynamic_library.h"

#include <gmock/gmock.h>

#include "tests/support/status_matchers.h"

namespace muster::collectives {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(DynamicLibraryTest, SymbolsAreFoundByName) {
  for (const bool isolated : {false, true}) {
    MUSTER_ASSERT_OK_AND_ASSIGN(const DynamicLibrary library,
                                DynamicLibrary::Load("libm.so.6", isolated));
    double (*cosine)(double) = nullptr;
    ASSERT_THAT(library.Find("cos", &cosine), IsOk());
    EXPECT_EQ(cosine(0), 1);
    EXPECT_THAT(library.path(), EndsWith("libm.so.6"));
    EXPECT_THAT(library.Find("no_such_function", &cosine),
                StatusIs(absl::StatusCode::kUnimplemented,
                         AllOf(HasSubstr("libm.so.6"), HasSubstr("no_such_function"))));
  }
}

TEST(DynamicLibraryTest, AMissingLibraryIsNamed) {
  EXPECT_THAT(DynamicLibrary::Load("libnone.so.9"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("cannot load libnone.so.9: ")));
}

}  // namespace
}  // namespace muster::collectives
