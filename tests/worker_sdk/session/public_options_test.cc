#include "muster/muster.h"

#include <gtest/gtest.h>

#include "base/status.h"
#include "worker_sdk/session/public_status.h"

namespace muster {
namespace {

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wextra"
#pragma GCC diagnostic error "-Wmissing-field-initializers"

/// Trainers name the options that they set, under the warnings that they like.
TEST(PublicOptionsTest, WhoNamesAnOptionNeedsNoOther) {
  EXPECT_EQ(SessionOptions{.worker_name = "w"}.worker_name, "w");
  EXPECT_EQ(CollectiveOptions{.device = 1}.device, 1);
  EXPECT_TRUE(SumOptions{.on_device = true}.on_device);
  EXPECT_EQ(DiLoCoOptions{.fragments = 2}.fragments, 2u);
  EXPECT_EQ(SparseTableOptions{.dim = 2}.dim, 2u);
  EXPECT_EQ(DenseTableOptions{.name = "w"}.name, "w");
}

#pragma GCC diagnostic pop

TEST(PublicOptionsTest, EveryCodeOfTheDocumentationExists) {
  const auto code = [](const absl::Status& status) { return internal::ToPublic(status).code(); };
  EXPECT_EQ(code(absl::NotFoundError("no library")), Status::Code::kNotFound);
  EXPECT_EQ(code(absl::UnimplementedError("too old")), Status::Code::kUnimplemented);
  EXPECT_EQ(code(absl::DataLossError("other")), Status::Code::kInternal);
}

}  // namespace
}  // namespace muster
