#include "benchmarks/lane/bench_lane.h"

#include <sys/uio.h>
#include <unistd.h>

#include <array>

#include "base/check.h"
#include "benchmarks/lane/raw_sockets.h"

namespace muster::ps {

BenchHandler::BenchHandler(uint32_t partitions, const std::vector<TableSpec>& tables)
    : owned_({.job_seed = 1, .partition_count = partitions}) {
  for (const TableSpec& table : tables) owned_.AddTable(table);
  LaneCommands commands;
  for (uint32_t i = 0; i < partitions; ++i) {
    commands.owns.push_back({PartitionId(i), OwnerEpoch(1), OwnerEpoch(1), {}, true, {}});
  }
  owned_.Apply(commands);
}

FrameClient::FrameClient(const std::string& address, Checksums checksums)
    : fd_(ConnectBench(address)), checksums_(checksums) {
  Send({}, wire::EncodeHello({.job = "bench", .job_id = "", .peer = "bench", .software = ""}), {},
       {});
  Receive();
}

FrameClient::~FrameClient() {
  ::close(fd_);
}

void FrameClient::Send(wire::Header header, const std::string& directory,
                       std::span<const uint64_t> keys, std::span<const std::byte> values) {
  header.directory_bytes = static_cast<uint32_t>(directory.size());
  header.keys = keys.size();
  header.value_bytes = values.size();
  if (checksums_ == Checksums::kOn) {
    const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(directory)),
                                                 std::as_bytes(keys), values};
    header.checksum_kind = wire::Checksum::kXxh3;
    header.checksum = wire::ChecksumOf(pieces);
  }
  std::array<std::byte, wire::kHeaderBytes> bytes;
  wire::EncodeHeader(header, bytes);
  iovec blocks[] = {{bytes.data(), bytes.size()},
                    {const_cast<char*>(directory.data()), directory.size()},
                    {const_cast<uint64_t*>(keys.data()), keys.size_bytes()},
                    {const_cast<std::byte*>(values.data()), values.size()}};
  size_t first = 0;
  while (first < std::size(blocks)) {
    ssize_t sent = ::writev(fd_, blocks + first, static_cast<int>(std::size(blocks) - first));
    MUSTER_CHECK_MSG(sent > 0, "the server closed the connection");
    for (; first < std::size(blocks) && static_cast<size_t>(sent) >= blocks[first].iov_len;
         ++first) {
      sent -= static_cast<ssize_t>(blocks[first].iov_len);
    }
    if (first == std::size(blocks)) break;
    blocks[first].iov_base = static_cast<char*>(blocks[first].iov_base) + sent;
    blocks[first].iov_len -= static_cast<size_t>(sent);
  }
}

void FrameClient::Receive() {
  std::array<std::byte, wire::kHeaderBytes> bytes;
  ReadAll(fd_, bytes.data(), bytes.size());
  const auto header = wire::DecodeHeader(bytes);
  MUSTER_CHECK(header.ok());
  directory_.resize(header->directory_bytes);
  ReadAll(fd_, directory_.data(), directory_.size());
  if (values_.size() < header->value_bytes) values_.resize(header->value_bytes);
  ReadAll(fd_, values_.data(), header->value_bytes);
  if (checksums_ == Checksums::kOn) {
    const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(directory_)),
                                                 std::span(values_).first(header->value_bytes)};
    MUSTER_CHECK(wire::ChecksumOf(pieces) == header->checksum);
  }
  if (header->kind == wire::Kind::kHelloReply) return;
  const auto reply = wire::DecodeReply(*header, directory_);
  MUSTER_CHECK(reply.ok());
  for (const wire::PartReply& part : reply->parts) {
    MUSTER_CHECK_MSG(part.code == wire::PartCode::kOk && !part.skipped, reply->text);
  }
}

}  // namespace muster::ps
