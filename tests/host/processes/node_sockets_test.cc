#include "host/processes/node_sockets.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using ::testing::Pair;
using testing::StatusIs;
using testing::TempDir;

TEST(NodeSocketsTest, WhereNobodyListensIsNobody) {
  TempDir folder;
  // Longer than the path of a socket may be.
  const std::string path = folder.File(std::string(200, 'x')) + "/nodes";
  MUSTER_ASSERT_OK_AND_ASSIGN(const NodeSockets sockets, NodeSockets::Open(path));
  EXPECT_THAT(sockets.Connect("ps-0", 1), StatusIs(absl::StatusCode::kNotFound, HasSubstr("ps-0")));
  MUSTER_ASSERT_OK_AND_ASSIGN(const int listening, sockets.Listen("ps-0", 1));
  MUSTER_ASSERT_OK_AND_ASSIGN(const int connection, sockets.Connect("ps-0", 1));
  ::close(connection);
  EXPECT_THAT(sockets.Connect("ps-0", 2), StatusIs(absl::StatusCode::kNotFound, HasSubstr("ps-0")));
  ::close(listening);
  EXPECT_THAT(sockets.Connect("ps-0", 1), StatusIs(absl::StatusCode::kNotFound, HasSubstr("ps-0")));
  MUSTER_ASSERT_OK_AND_ASSIGN(const int again, sockets.Listen("ps-0", 1));
  ::close(again);
}

TEST(NodeSocketsTest, ListsSocketsAlone) {
  TempDir folder;
  MUSTER_ASSERT_OK_AND_ASSIGN(const NodeSockets sockets, NodeSockets::Open(folder.path()));
  EXPECT_THAT(sockets.List(), IsEmpty());
  MUSTER_ASSERT_OK_AND_ASSIGN(const int first, sockets.Listen("worker-0", 12));
  MUSTER_ASSERT_OK_AND_ASSIGN(const int second, sockets.Listen("a.b", 3));
  for (const char* name : {"ps-0.sock", "ps-0.x.sock", ".1.sock", "ps-0.1", "ps-0.1x.sock"}) {
    ASSERT_THAT(WriteFileAtomically(folder.File(name), ""), IsOk());
  }
  EXPECT_THAT(sockets.List(), ElementsAre(Pair("a.b", 3), Pair("worker-0", 12)));
  sockets.Remove("a.b", 3);
  EXPECT_THAT(sockets.List(), ElementsAre(Pair("worker-0", 12)));
  ::close(first);
  ::close(second);
}

TEST(NodeSocketsTest, NamesTheFolderThatCannotBeUsed) {
  TempDir folder;
  ASSERT_THAT(WriteFileAtomically(folder.File("file"), ""), IsOk());
  const absl::Status status = NodeSockets::Open(folder.File("file/nodes")).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder.File("file")));
}

}  // namespace
}  // namespace muster
