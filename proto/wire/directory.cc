#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "proto/wire/frame.h"

namespace muster::wire {
namespace {

constexpr size_t kPartBytes = 16;
constexpr size_t kPartReplyBytes = 8;
constexpr size_t kGroupBytes = 8;
constexpr size_t kVersionBytes = 8;
/// A flag in a group's number of keys: its version follows.
constexpr uint32_t kHasVersion = 1u << 31;
static_assert(kKeysMax < kHasVersion);

/// Appends little-endian numbers and length-prefixed texts.
class Writer {
 public:
  Writer() = default;
  /// Reuses the memory of `out`.
  explicit Writer(std::string out) : out_(std::move(out)) { out_.clear(); }

  template <typename T>
  void Put(T value) {
    static_assert(std::has_unique_object_representations_v<T>);
    out_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void PutText(std::string_view text) {
    text = text.substr(0, kTextBytesMax);
    Put(static_cast<uint32_t>(text.size()));
    out_.append(text);
  }
  /// `bytes`: as many as the parts take.
  void PutParts(const Parts& parts, size_t bytes) {
    size_t at = out_.size();
    out_.resize(at + bytes);
    const auto put = [&](auto value) {
      std::memcpy(out_.data() + at, &value, sizeof(value));
      at += sizeof(value);
    };
    for (const Part& part : parts) {
      put(part.partition);
      put(static_cast<uint32_t>(part.groups.size()));
      put(part.owner_epoch);
      for (const Group& group : part.groups) {
        put(group.table);
        put(group.versioned() ? group.keys | kHasVersion : group.keys);
        if (group.versioned()) put(group.version);
      }
    }
    MUSTER_CHECK(at == out_.size());
  }
  void Reserve(size_t bytes) { out_.reserve(bytes); }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

/// Reads what Writer wrote. After the first failure, every read returns zero, and status() keeps
/// the failure.
class Reader {
 public:
  explicit Reader(std::string_view in) : in_(in) {}

  template <typename T>
  T Get(std::string_view what) {
    T value{};
    if (!status_.ok()) return value;
    if (in_.size() - at_ < sizeof(T)) {
      Fail(fmt::format("it ends at byte {}, within {}", in_.size(), what));
      return value;
    }
    std::memcpy(&value, in_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  std::string GetText(std::string_view what) {
    const auto size = Get<uint32_t>(what);
    if (!status_.ok()) return {};
    if (size > kTextBytesMax) {
      Fail(fmt::format("{} has {} bytes, the limit is {}", what, size, kTextBytesMax));
      return {};
    }
    if (in_.size() - at_ < size) {
      Fail(fmt::format("it ends at byte {}, within {}", in_.size(), what));
      return {};
    }
    std::string text(in_.substr(at_, size));
    at_ += size;
    return text;
  }

  /// Reads `count` parts and adds up their keys.
  uint64_t GetParts(uint32_t count, Parts* parts) {
    uint64_t keys = 0;
    parts->Clear();
    // The caller has checked that about so many parts fit. The rest are groups.
    const size_t left = in_.size() - at_;
    parts->Reserve(count, (left - std::min(left, count * kPartBytes)) / kGroupBytes);
    for (uint32_t i = 0; i < count && status_.ok(); ++i) {
      const auto partition = Get<uint32_t>("a part's partition");
      const auto groups = Get<uint32_t>("a part's number of groups");
      parts->Add(partition, Get<uint64_t>("a part's owner epoch"));
      GetGroups(i, groups, parts, &keys);
    }
    return keys;
  }

  void Fail(std::string_view why) {
    if (status_.ok()) {
      status_ = absl::InvalidArgumentError(fmt::format("malformed directory: {}", why));
    }
  }

  /// The first failure, or an error if bytes are left over.
  absl::Status Finish() {
    if (status_.ok() && at_ != in_.size()) {
      Fail(fmt::format("{} bytes are left over at byte {}", in_.size() - at_, at_));
    }
    return status_;
  }
  const absl::Status& status() const { return status_; }

 private:
  /// Reads `count` groups of the last part, which is number `part`, and adds up their keys.
  void GetGroups(uint32_t part, uint32_t count, Parts* parts, uint64_t* keys) {
    if (!status_.ok()) return;
    if (count > kGroupsPerPartMax) {
      Fail(fmt::format("part {} has {} groups, the limit is {}", part, count, kGroupsPerPartMax));
      return;
    }
    if ((in_.size() - at_) / 8 < count) {
      Fail(fmt::format("it ends at byte {}, within the {} groups of part {}", in_.size(), count,
                       part));
      return;
    }
    for (uint32_t i = 0; i < count; ++i) {
      Group group;
      if (in_.size() - at_ < kGroupBytes) {
        return Fail(
            fmt::format("it ends at byte {}, within group {} of part {}", in_.size(), i, part));
      }
      std::memcpy(&group.table, in_.data() + at_, sizeof(group.table));
      std::memcpy(&group.keys, in_.data() + at_ + sizeof(group.table), sizeof(group.keys));
      at_ += kGroupBytes;
      if ((group.keys & kHasVersion) != 0) {
        group.keys &= ~kHasVersion;
        group.version = Get<uint64_t>("a group's version");
        if (!group.versioned()) Fail(fmt::format("group {} of part {} has no version", i, part));
      }
      *keys += group.keys;
      parts->AddGroup(group);
    }
  }

  std::string_view in_;
  size_t at_ = 0;
  absl::Status status_;
};

/// True if `parts` parts of at least `bytes_each` fit into a directory of `bytes`. Checked before
/// memory is reserved for them.
absl::Status CheckParts(const Header& header, size_t bytes, size_t bytes_each) {
  if (header.parts > kPartsMax || bytes / bytes_each < header.parts) {
    return absl::InvalidArgumentError(
        fmt::format("malformed directory: {} bytes cannot hold the {} parts of the header", bytes,
                    header.parts));
  }
  return absl::OkStatus();
}

absl::Status CheckGroups(const Header& header, uint64_t keys, const Parts& parts) {
  if (keys != header.keys) {
    return absl::InvalidArgumentError(fmt::format(
        "malformed directory: its groups have {} keys, the header says {}", keys, header.keys));
  }
  if (parts.version_count() != header.versions) {
    return absl::InvalidArgumentError(
        fmt::format("malformed directory: its groups have {} versions, the header says {}",
                    parts.version_count(), header.versions));
  }
  return absl::OkStatus();
}

size_t PartsBytes(const Parts& parts) {
  return kPartBytes * parts.size() + kGroupBytes * parts.group_count() +
         kVersionBytes * parts.version_count();
}

}  // namespace

std::string EncodeHello(const Hello& hello) {
  Writer out;
  out.PutText(hello.job);
  out.PutText(hello.job_id);
  out.PutText(hello.peer);
  out.PutText(hello.software);
  out.Put(hello.ring_bytes_max);
  return out.Take();
}

absl::StatusOr<Hello> DecodeHello(std::string_view directory) {
  Reader in(directory);
  Hello hello;
  hello.job = in.GetText("the job's name");
  hello.job_id = in.GetText("the job's id");
  hello.peer = in.GetText("the peer's name");
  hello.software = in.GetText("the peer's software");
  hello.ring_bytes_max = in.Get<uint32_t>("the size of a ring");
  MUSTER_RETURN_IF_ERROR(in.Finish());
  return hello;
}

std::string EncodeHelloReply(const HelloReply& reply) {
  Writer out;
  out.Put(reply);
  return out.Take();
}

absl::StatusOr<HelloReply> DecodeHelloReply(std::string_view directory) {
  Reader in(directory);
  const auto reply = in.Get<HelloReply>("the server's greeting");
  MUSTER_RETURN_IF_ERROR(in.Finish());
  return reply;
}

void EncodePull(const Parts& parts, std::string* directory) {
  Writer out(std::move(*directory));
  out.PutParts(parts, PartsBytes(parts));
  *directory = out.Take();
}

std::string EncodePull(const Parts& parts) {
  std::string directory;
  EncodePull(parts, &directory);
  return directory;
}

absl::Status DecodePull(const Header& header, std::string_view directory, Parts* parts) {
  MUSTER_RETURN_IF_ERROR(CheckParts(header, directory.size(), kPartBytes));
  Reader in(directory);
  const uint64_t keys = in.GetParts(header.parts, parts);
  MUSTER_RETURN_IF_ERROR(in.Finish());
  return CheckGroups(header, keys, *parts);
}

void EncodePush(const PushIdentity& push, const Parts& parts, std::string* directory) {
  Writer out(std::move(*directory));
  out.Reserve(sizeof(push) + PartsBytes(parts));
  out.Put(push);
  out.PutParts(parts, PartsBytes(parts));
  *directory = out.Take();
}

std::string EncodePush(const PushIdentity& push, const Parts& parts) {
  std::string directory;
  EncodePush(push, parts, &directory);
  return directory;
}

absl::Status DecodePush(const Header& header, std::string_view directory, PushIdentity* push,
                        Parts* parts) {
  MUSTER_RETURN_IF_ERROR(CheckParts(header, directory.size(), kPartBytes));
  Reader in(directory);
  *push = in.Get<PushIdentity>("the push's identity");
  const uint64_t keys = in.GetParts(header.parts, parts);
  MUSTER_RETURN_IF_ERROR(in.Finish());
  return CheckGroups(header, keys, *parts);
}

size_t ReplyDirectoryBytes(size_t parts, size_t versions) {
  return parts * kPartReplyBytes + versions * kVersionBytes + sizeof(uint32_t);
}

std::string EncodeReply(std::span<const PartReply> parts, std::string_view text,
                        std::span<const uint64_t> versions) {
  Writer out;
  out.Reserve(ReplyDirectoryBytes(parts.size(), versions.size()) + text.size());
  for (const PartReply& part : parts) {
    out.Put(part.partition);
    out.Put(static_cast<uint8_t>(part.code));
    out.Put(static_cast<uint8_t>(part.skipped));
    out.Put(uint16_t{0});
  }
  for (const uint64_t version : versions) out.Put(version);
  out.PutText(text);
  return out.Take();
}

absl::Status DecodeReply(const Header& header, std::string_view directory, Reply* reply) {
  MUSTER_RETURN_IF_ERROR(CheckParts(header, directory.size(), kPartReplyBytes));
  Reader in(directory);
  reply->parts.resize(header.parts);
  for (uint32_t i = 0; i < header.parts; ++i) {
    PartReply& part = reply->parts[i];
    part.partition = in.Get<uint32_t>("a part's partition");
    const auto code = in.Get<uint8_t>("a part's code");
    const auto skipped = in.Get<uint8_t>("a part's skipped flag");
    const auto zero = in.Get<uint16_t>("a part's padding");
    if (code > static_cast<uint8_t>(PartCode::kMissing)) {
      in.Fail(fmt::format("part {} has the unknown code {}", i, code));
    }
    if (skipped > 1 || zero != 0) {
      in.Fail(fmt::format("part {} has a flag or padding byte of another value than 0 or 1", i));
    }
    part.code = static_cast<PartCode>(code);
    part.skipped = skipped != 0;
  }
  if (directory.size() / kVersionBytes < header.versions) {
    in.Fail(fmt::format("{} bytes cannot hold the {} versions of the header", directory.size(),
                        header.versions));
  }
  reply->versions.resize(in.status().ok() ? header.versions : 0);
  for (uint64_t& version : reply->versions) {
    version = in.Get<uint64_t>("a version");
    if (version == kUnversioned) in.Fail("a version is none");
  }
  reply->text = in.GetText("the text");
  return in.Finish();
}

absl::StatusOr<Reply> DecodeReply(const Header& header, std::string_view directory) {
  Reply reply;
  MUSTER_RETURN_IF_ERROR(DecodeReply(header, directory, &reply));
  return reply;
}

std::string EncodeError(std::string_view text) {
  Writer out;
  out.PutText(text);
  return out.Take();
}

absl::StatusOr<std::string> DecodeError(std::string_view directory) {
  Reader in(directory);
  std::string text = in.GetText("the text");
  MUSTER_RETURN_IF_ERROR(in.Finish());
  return text;
}

}  // namespace muster::wire
