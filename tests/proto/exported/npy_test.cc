#include "proto/exported/npy.h"

#include <fmt/format.h>

#include "base/random.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::muster::testing::StatusIs;
using ::testing::HasSubstr;

TEST(NpyTest, TheHeaderIsWhatNumPyWrites) {
  // numpy.save of an array of shape (3, 2), dtype float32, NumPy 2.4: the first 128 bytes.
  std::string expected("\x93NUMPY\x01\x00\x76\x00", 10);
  expected += "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }";
  expected.resize(127, ' ');
  expected += '\n';
  EXPECT_EQ(EncodeNpyHeader({kNpyFloat32, {3, 2}}), expected);
}

TEST(NpyTest, ArraysComeBack) {
  for (const NpyHeader& header : {NpyHeader{kNpyFloat32, {3, 2}}, NpyHeader{kNpyUint64, {3}},
                                  NpyHeader{kNpyFloat32, {}}, NpyHeader{kNpyFloat32, {0, 7}}}) {
    uint64_t bytes = header.dtype == kNpyUint64 ? 8 : 4;
    for (const uint64_t extent : header.shape) bytes *= extent;
    const std::string prefix = EncodeNpyHeader(header);
    EXPECT_EQ(prefix.size() % 64, 0u);
    const std::string file = prefix + std::string(bytes, 'd');
    MUSTER_ASSERT_OK_AND_ASSIGN(const NpyArray array, DecodeNpy(file));
    EXPECT_EQ(array.header, header);
    EXPECT_EQ(array.data, std::string(bytes, 'd'));
  }
}

TEST(NpyTest, OtherFilesAreRefused) {
  const std::string good = EncodeNpyHeader({kNpyFloat32, {2}}) + "12345678";
  const auto replaced = [&](std::string from, std::string to) {
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    return bad;
  };
  struct Case {
    std::string file;
    const char* text;
  };
  const Case cases[] = {
      {"", "not a NumPy"},
      {"PK\x03\x04 something else", "not a NumPy"},
      {good.substr(0, 40), "cut off"},
      {good.substr(0, good.size() - 1), "needs 8 bytes of data, but it has 7"},
      {good + "1", "but it has 9"},
      {replaced("<f4", "<f8"), "dtype is '<f8'"},
      {replaced("False", "True "), "Fortran order"},
      {replaced("(2,)", "(2x)"), "shape does not parse"},
      {replaced("(2,)", "99,)"), "shape does not parse"},
      {replaced(std::string("\x01\x00", 2), std::string("\x03\x00", 2)), "version 3"},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(DecodeNpy(c.file), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.text)));
  }
}

/// A file of version 1 or 2 with this dictionary and data.
std::string File(int version, const std::string& dictionary, const std::string& data) {
  std::string file("\x93NUMPY", 6);
  file += {static_cast<char>(version), '\x00'};
  for (int byte = 0; byte < 2 * version; ++byte) {
    file += static_cast<char>(dictionary.size() >> (8 * byte) & 0xff);
  }
  return file + dictionary + data;
}

TEST(NpyTest, HeadersOfAnyLengthAndBothVersionsAreRead) {
  const std::string dictionary = "{'descr': '<u8', 'fortran_order': False, 'shape': (2,), }";
  for (const int version : {1, 2}) {
    for (const size_t length : {size_t{60}, size_t{300}, size_t{65'535}, size_t{65'536}}) {
      if (version == 1 && length > 65'535) continue;  // it counts them in two bytes
      std::string padded = dictionary;
      padded.resize(length, ' ');
      const std::string file = File(version, padded, "0123456789abcdef");
      MUSTER_ASSERT_OK_AND_ASSIGN(const NpyArray array, DecodeNpy(file));
      EXPECT_EQ(array.header, (NpyHeader{kNpyUint64, {2}}));
      EXPECT_EQ(array.data, "0123456789abcdef") << "version " << version << " length " << length;
    }
  }
  // Its third and fourth byte count, too.
  for (const size_t length : {size_t{65'537}, size_t{1} << 24}) {
    std::string padded = dictionary;
    padded.resize(length, ' ');
    EXPECT_THAT(DecodeNpy(File(2, padded, "0123456789abcdef")),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(fmt::format("{}", length))));
  }
}

TEST(NpyTest, SpacesAreOptionalAndLongShapesComeBack) {
  const std::string file =
      File(1, "{'descr':'<f4','fortran_order':False,'shape':(2,)}", "12345678");
  EXPECT_EQ(DecodeNpy(file).value().header, (NpyHeader{kNpyFloat32, {2}}));
  NpyHeader header{kNpyFloat32, std::vector<uint64_t>(31, 4'294'967'296)};
  header.shape.push_back(0);
  const std::string encoded = EncodeNpyHeader(header);
  EXPECT_GT(encoded.size(), 256u);
  EXPECT_THAT(DecodeNpy(encoded),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("(4294967296, 4294967296, ")));
  header.shape.assign(32, 0);
  EXPECT_EQ(DecodeNpy(EncodeNpyHeader(header)).value().header, header);
}

TEST(NpyTest, ManyAxesAndLargeExtentsAreBounded) {
  const auto shape = [](const std::string& text) {
    return DecodeNpy(File(1, "{'descr': '<f4', 'fortran_order': False, 'shape': " + text + ", }",
                          std::string(4, 'd')));
  };
  std::string axes;
  for (int i = 0; i < 32; ++i) axes += "1,";
  EXPECT_TRUE(shape("(" + axes + ")").ok()) << shape("(" + axes + ")").status();
  EXPECT_THAT(shape("(" + axes + "1)"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("shape does not parse")));
  // 2^62 elements of four bytes are 2^64, which is no zero.
  EXPECT_THAT(shape("(4611686018427387904,)"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("but it has 4")));
  EXPECT_THAT(shape("(4611686018427387904, 0)"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("but it has 4")));
}

TEST(NpyTest, DamagedHeadersNeverCrash) {
  const std::string good = EncodeNpyHeader({kNpyFloat32, {2, 3, 4}}) + std::string(96, 'x');
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    Rng rng(seed);
    std::string bad = good;
    for (uint64_t i = 0; i <= rng.Below(4); ++i) {
      bad[rng.Below(128)] = static_cast<char>(rng.Below(256));
    }
    if (rng.Below(4) == 0) bad.resize(rng.Below(bad.size()));
    (void)DecodeNpy(bad).ok();
  }
}

}  // namespace
}  // namespace muster
