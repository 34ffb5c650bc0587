#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "ps/net/internal/request.h"

namespace muster::ps {
namespace {

/// The cost of decoding a byte of a directory, in bytes that could be moved in the same time.
constexpr uint64_t kDirectoryWork = 8;
/// Memory of a decoded directory that is kept for the next one.
constexpr size_t kPartsBytesKept = 256u << 10;

}  // namespace

absl::Status CheckChecksum(const wire::Header& header, uint64_t checksum) {
  if (checksum == header.checksum) return absl::OkStatus();
  return absl::DataLossError(
      fmt::format("malformed frame: its checksum is {:#018x}, but the header says {:#018x}",
                  checksum, header.checksum));
}

void Request::Begin(const wire::Header& header, AlignedBuffer spare) {
  MUSTER_CHECK(!under_work());
  if (notes_ == nullptr) notes_ = handler_->MakeNotes();
  header_ = header;
  pull_reply_ = {};
  push_reply_ = {};
  pull_reply_.values = std::move(spare);
  MUSTER_CHECK(pull_reply_.values.Resize(0));
  first_ = true;
  block_ = 0;
  sum_.Reset();
  Enter(header.checksum_kind == wire::Checksum::kNone ? Stage::kDecode : Stage::kVerify);
}

absl::StatusOr<Progress> Request::Go(WorkLimit* work) {
  absl::StatusOr<Progress> progress = GoOn(work);
  if (!progress.ok() || *progress == Progress::kDone) stage_ = Stage::kNone;
  if (!under_work() && parts_.capacity_bytes() > kPartsBytesKept) parts_ = {};
  return progress;
}

Progress Request::GoAbandoned(WorkLimit* work) {
  if (stage_ == Stage::kServe && !first_ && Serve(work, true) == Progress::kMore) {
    return Progress::kMore;
  }
  stage_ = Stage::kNone;
  return Progress::kDone;
}

absl::StatusOr<Progress> Request::GoOn(WorkLimit* work) {
  if (stage_ == Stage::kVerify) {
    const AlignedBuffer* const blocks[] = {&blocks_->directory, &blocks_->keys, &blocks_->values};
    for (; block_ < std::size(blocks); ++block_, done_ = 0) {
      if (!Sum({blocks[block_]->data(), blocks[block_]->size()}, work)) return Progress::kMore;
    }
    MUSTER_RETURN_IF_ERROR(CheckChecksum(header_, sum_.value()));
    Enter(Stage::kDecode);
  }
  if (stage_ == Stage::kDecode) {
    MUSTER_RETURN_IF_ERROR(Decode(work));
    Enter(Stage::kWiden);
  }
  if (stage_ == Stage::kWiden) {
    if (!Widen(work)) return Progress::kMore;
    Enter(Stage::kServe);
  }
  if (stage_ == Stage::kServe) {
    if (Serve(work, false) == Progress::kMore) return Progress::kMore;
    EncodeAnswer();
    Enter(Stage::kNarrow);
  }
  if (stage_ == Stage::kNarrow) {
    if (!Narrow(work)) return Progress::kMore;
    sum_.Reset();
    sum_.Add(std::as_bytes(std::span(answer_.directory)));
    Enter(Stage::kSign);
  }
  if (header_.checksum_kind != wire::Checksum::kNone) {
    if (!Sum({answer_.values.data(), answer_.value_bytes}, work)) return Progress::kMore;
    answer_.header.checksum = sum_.value();
  }
  return Progress::kDone;
}

bool Request::Sum(std::span<const std::byte> bytes, WorkLimit* work) {
  while (done_ < bytes.size()) {
    if (work->spent()) return false;
    const size_t count = work->Fits(bytes.size() - done_, 1);
    sum_.Add(bytes.subspan(done_, count));
    work->Spend(count);
    done_ += count;
  }
  return true;
}

absl::Status Request::Decode(WorkLimit* work) {
  work->Spend(kDirectoryWork * blocks_->directory.size());
  if (pulls()) {
    return wire::DecodePull(header_, blocks_->directory_text(), &parts_);
  }
  MUSTER_RETURN_IF_ERROR(wire::DecodePush(header_, blocks_->directory_text(), &push_, &parts_));
  if (header_.encoding == wire::Encoding::kFloat32) return absl::OkStatus();
  const size_t count = blocks_->values.size() / wire::BytesPerValue(header_.encoding);
  if (widened_.Resize(count * sizeof(float))) return absl::OkStatus();
  return absl::ResourceExhaustedError(fmt::format("no memory to widen {} values", count));
}

bool Request::Widen(WorkLimit* work) {
  if (pulls() || header_.encoding == wire::Encoding::kFloat32) return true;
  const std::span<float> out = widened_.floats();
  const size_t bytes_each = wire::BytesPerValue(header_.encoding);
  while (done_ < out.size()) {
    if (work->spent()) return false;
    const size_t count = work->Fits(out.size() - done_, sizeof(float));
    wire::DecodeValues({blocks_->values.data() + done_ * bytes_each, count * bytes_each},
                       header_.encoding, out.subspan(done_, count));
    work->Spend(count * sizeof(float));
    done_ += count;
  }
  return true;
}

Progress Request::Serve(WorkLimit* work, bool abandoned) {
  const Slice slice{.first = std::exchange(first_, false),
                    .abandoned = abandoned,
                    .work = work,
                    .notes = notes_.get()};
  const std::span<const uint64_t> keys = blocks_->keys.words();
  if (pulls()) {
    return handler_->OnPull({.parts = parts_, .keys = keys, .encoding = header_.encoding}, slice,
                            &pull_reply_);
  }
  const bool narrow = header_.encoding != wire::Encoding::kFloat32;
  const std::span<const float> values = narrow ? widened_.floats() : blocks_->values.floats();
  return handler_->OnPush({.push = push_, .parts = parts_, .keys = keys, .values = values}, slice,
                          &push_reply_);
}

void Request::EncodeAnswer() {
  const std::vector<wire::PartReply>& parts = pulls() ? pull_reply_.parts : push_reply_.parts;
  const std::string& text = pulls() ? pull_reply_.text : push_reply_.text;
  const bool refused =
      std::ranges::find(parts, wire::PartCode::kBadRequest, &wire::PartReply::code) != parts.end();
  answer_ = {};
  if (refused) answer_.refused = text.empty() ? "(no reason given)" : text;
  answer_.directory = wire::EncodeReply(parts, text, pull_reply_.versions);
  answer_.values = std::move(pull_reply_.values);
  answer_.value_bytes =
      answer_.values.size() / sizeof(float) * wire::BytesPerValue(header_.encoding);
  wire::Header& header = answer_.header;
  header.kind = pulls() ? wire::Kind::kPullReply : wire::Kind::kPushReply;
  header.request = header_.request;
  header.directory_bytes = static_cast<uint32_t>(answer_.directory.size());
  header.parts = static_cast<uint32_t>(parts.size());
  header.versions = static_cast<uint32_t>(pull_reply_.versions.size());
  header.value_bytes = answer_.value_bytes;
  header.checksum_kind = header_.checksum_kind;
  if (pulls()) header.encoding = header_.encoding;
}

bool Request::Narrow(WorkLimit* work) {
  if (header_.encoding == wire::Encoding::kFloat32) return true;
  // Works in place, because the written bytes never pass those that are still to be read.
  const std::span<const float> values = answer_.values.floats();
  const size_t bytes_each = wire::BytesPerValue(header_.encoding);
  while (done_ < values.size()) {
    if (work->spent()) return false;
    const size_t count = work->Fits(values.size() - done_, sizeof(float));
    wire::EncodeValues(values.subspan(done_, count), header_.encoding,
                       {answer_.values.data() + done_ * bytes_each, count * bytes_each});
    work->Spend(count * sizeof(float));
    done_ += count;
  }
  return true;
}

}  // namespace muster::ps
