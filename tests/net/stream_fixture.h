#pragma once

#include <sys/socket.h>

#include <array>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "net/byte_stream.h"
#include "tests/support/status_matchers.h"

namespace muster::net {
namespace stream_test {

namespace asio = boost::asio;
using boost::system::error_code;

inline std::pair<Socket, Socket> ConnectedSockets(asio::io_context* io) {
  std::array<int, 2> fds;
  MUSTER_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) == 0);
  const asio::generic::stream_protocol protocol(AF_UNIX, 0);
  return {Socket(*io, protocol, fds[0]), Socket(*io, protocol, fds[1])};
}

/// The arguments of a handler's call.
struct Result {
  error_code error;
  size_t bytes = 0;
};
using Results = std::vector<Result>;
inline ByteStream::Handler Into(Results* results) {
  return [results](const error_code& error, size_t bytes) { results->push_back({error, bytes}); };
}

inline std::string Pattern(size_t bytes) {
  std::string text(bytes, 0);
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 31 + i / 1000);
  return text;
}

}  // namespace stream_test

/// The tests that every kind of stream must pass. `Kind::Make(io)` makes both ends of one.
template <typename Kind>
class ByteStreamTest : public ::testing::Test {
 protected:
  using Results = stream_test::Results;

  ByteStreamTest() { std::tie(here_, there_) = Kind::Make(&io_); }

  /// Turns the loop until something has come.
  void Await(const Results& results, size_t count) {
    if (io_.stopped()) io_.restart();  // nothing was in progress
    while (results.size() < count) MUSTER_CHECK(io_.run_one() > 0);
  }
  static boost::asio::mutable_buffer To(std::string* text) {
    return boost::asio::buffer(text->data(), text->size());
  }

  boost::asio::io_context io_{1};
  std::unique_ptr<ByteStream> here_, there_;
};
TYPED_TEST_SUITE_P(ByteStreamTest);

TYPED_TEST_P(ByteStreamTest, AllThatIsWrittenIsReadInPiecesOfAnySize) {
  using namespace stream_test;
  const std::string sent = Pattern(5'000'001);
  std::string first(100, 0), second(0, 0), third(sent.size() - 100, 0);
  Results wrote, read;
  this->here_->Write({asio::buffer(sent.data(), 1'000'000), asio::buffer(sent.data(), size_t{0}),
                      asio::buffer(sent.data() + 1'000'000, sent.size() - 1'000'000)},
                     Into(&wrote));
  this->there_->Read({this->To(&first)}, Into(&read));
  this->Await(read, 1);
  this->there_->Read({this->To(&second), this->To(&third)}, Into(&read));
  this->Await(read, 2);
  this->Await(wrote, 1);
  EXPECT_EQ(first + third, sent);
  EXPECT_EQ(read[0].bytes, 100u);
  EXPECT_EQ(read[1].bytes, third.size());
  EXPECT_EQ(wrote[0].bytes, sent.size());
  EXPECT_EQ(this->here_->bytes_moved(), sent.size());
  EXPECT_EQ(this->there_->bytes_moved(), sent.size());
}

TYPED_TEST_P(ByteStreamTest, SomeIsWhatHasCome) {
  using namespace stream_test;
  std::string into(1000, 0);
  Results wrote, read;
  this->there_->ReadSome(this->To(&into), Into(&read));
  const std::string sent = "some";
  this->here_->Write({asio::buffer(sent)}, Into(&wrote));
  EXPECT_TRUE(read.empty() && wrote.empty()) << "a handler came within the call";
  this->Await(read, 1);
  EXPECT_EQ(into.substr(0, read[0].bytes), sent.substr(0, read[0].bytes));
  EXPECT_GT(read[0].bytes, 0u);
}

TYPED_TEST_P(ByteStreamTest, BothDirectionsAtOnce) {
  using namespace stream_test;
  const std::string a = Pattern(3'000'000), b = Pattern(2'000'000);
  std::string from_a(a.size(), 0), from_b(b.size(), 0);
  Results results;
  this->here_->Write({asio::buffer(a)}, Into(&results));
  this->there_->Write({asio::buffer(b)}, Into(&results));
  this->here_->Read({this->To(&from_b)}, Into(&results));
  this->there_->Read({this->To(&from_a)}, Into(&results));
  this->Await(results, 4);
  EXPECT_TRUE(from_a == a && from_b == b);
}

TYPED_TEST_P(ByteStreamTest, WhatWasWrittenBeforeTheEndIsRead) {
  using namespace stream_test;
  const std::string sent = "last words";
  std::string into(sent.size(), 0), more(1, 0);
  Results wrote, read;
  this->here_->Write({asio::buffer(sent)}, Into(&wrote));
  this->Await(wrote, 1);
  this->here_->Close();
  EXPECT_FALSE(this->here_->is_open());
  this->there_->Read({this->To(&into)}, Into(&read));
  this->Await(read, 1);
  EXPECT_EQ(into, sent);
  this->there_->Read({this->To(&more)}, Into(&read));
  this->Await(read, 2);
  EXPECT_TRUE(read[1].error);
}

TYPED_TEST_P(ByteStreamTest, ShutdownEndsOneDirection) {
  using namespace stream_test;
  std::string into(1, 0);
  Results read, wrote;
  this->here_->ShutdownSend();
  this->there_->Read({this->To(&into)}, Into(&read));
  this->Await(read, 1);
  EXPECT_TRUE(read[0].error);
  EXPECT_TRUE(this->here_->is_open());
  this->there_->Write({asio::buffer("x", 1)}, Into(&wrote));
  this->here_->Read({this->To(&into)}, Into(&read));
  this->Await(read, 2);
  EXPECT_FALSE(read[1].error) << "the other direction goes on";
  EXPECT_EQ(into, "x");
  this->Await(wrote, 1);
}

TYPED_TEST_P(ByteStreamTest, CloseEndsWhatIsUnderWay) {
  using namespace stream_test;
  const std::string sent = Pattern(100'000'000);
  std::string into(1, 0);
  Results read, wrote;
  this->here_->Read({this->To(&into)}, Into(&read));
  this->here_->Write({asio::buffer(sent)}, Into(&wrote));
  this->here_->Close();
  this->here_->Close();
  this->Await(read, 1);
  this->Await(wrote, 1);
  EXPECT_TRUE(read[0].error && wrote[0].error);
}

TYPED_TEST_P(ByteStreamTest, APeerThatEndsInTheMiddleIsAnErrorWithWhatHasCome) {
  using namespace stream_test;
  const std::string sent = "half an ans";
  std::string into(2 * sent.size(), 0);
  Results wrote, read;
  this->there_->ReadOne(this->To(&into), Into(&read));
  this->here_->Write({asio::buffer(sent)}, Into(&wrote));
  this->Await(wrote, 1);
  EXPECT_FALSE(wrote[0].error);
  this->here_->Close();
  this->Await(read, 1);
  EXPECT_TRUE(read[0].error);
  EXPECT_EQ(read[0].bytes, sent.size());
  EXPECT_EQ(into.substr(0, sent.size()), sent);
  this->there_->ReadSome(this->To(&into), Into(&read));
  this->Await(read, 2);
  EXPECT_TRUE(read[1].error) << "the end stays";
  EXPECT_EQ(read[1].bytes, 0u);
}

TYPED_TEST_P(ByteStreamTest, APeerThatIsGoneEndsWrites) {
  using namespace stream_test;
  const std::string sent = Pattern(8'000'000);
  Results wrote;
  this->here_->Write({asio::buffer(sent)}, Into(&wrote));
  this->there_->Close();
  this->Await(wrote, 1);
  EXPECT_TRUE(wrote[0].error);
  EXPECT_LT(wrote[0].bytes, sent.size());
  this->here_->Write({asio::buffer(sent)}, Into(&wrote));
  EXPECT_EQ(wrote.size(), 1u) << "a handler came within the call";
  this->Await(wrote, 2);
  EXPECT_TRUE(wrote[1].error);
}

TYPED_TEST_P(ByteStreamTest, HandlersAreCalledOnceAndNotWithinClose) {
  using namespace stream_test;
  const std::string sent = Pattern(8'000'000);
  std::string into(1, 0);
  Results read, wrote;
  this->here_->Read({this->To(&into)}, Into(&read));
  this->here_->Write({asio::buffer(sent)}, Into(&wrote));
  this->here_->Close();
  EXPECT_TRUE(read.empty() && wrote.empty()) << "a handler came within the call";
  this->Await(read, 1);
  this->Await(wrote, 1);
  EXPECT_TRUE(read[0].error && wrote[0].error);
  while (this->io_.poll() > 0) {
  }
  EXPECT_EQ(read.size(), 1u);
  EXPECT_EQ(wrote.size(), 1u);
}

TYPED_TEST_P(ByteStreamTest, EveryByteIsCountedOnceWhateverReadsAndWritesIt) {
  using namespace stream_test;
  const std::string sent = Pattern(300);
  std::string first(100, 0), second(200, 0), back(7, 0);
  Results wrote, read;
  this->here_->Write({asio::buffer(sent.data(), 50)}, Into(&wrote));
  this->Await(wrote, 1);
  this->here_->Write({asio::buffer(sent.data() + 50, 250)}, Into(&wrote));
  this->Await(wrote, 2);
  EXPECT_EQ(wrote[0].bytes, 50u);
  EXPECT_EQ(wrote[1].bytes, 250u);
  size_t got = 0;
  while (got < first.size()) {
    this->there_->ReadSome(asio::buffer(first.data() + got, first.size() - got), Into(&read));
    this->Await(read, read.size() + 1);
    ASSERT_FALSE(read.back().error);
    got += read.back().bytes;
    EXPECT_EQ(this->there_->bytes_moved(), got);
  }
  const size_t reads = read.size();
  this->there_->ReadOne(this->To(&second), Into(&read));
  this->Await(read, reads + 1);
  EXPECT_EQ(read.back().bytes, second.size());
  EXPECT_EQ(first + second, sent);
  this->there_->Write({asio::buffer(back.data(), back.size())}, Into(&wrote));
  this->here_->Read({this->To(&back)}, Into(&read));
  this->Await(read, reads + 2);
  this->Await(wrote, 3);
  EXPECT_EQ(this->here_->bytes_moved(), 307u);
  EXPECT_EQ(this->there_->bytes_moved(), 307u);
}

REGISTER_TYPED_TEST_SUITE_P(ByteStreamTest, AllThatIsWrittenIsReadInPiecesOfAnySize,
                            SomeIsWhatHasCome, BothDirectionsAtOnce,
                            WhatWasWrittenBeforeTheEndIsRead, ShutdownEndsOneDirection,
                            CloseEndsWhatIsUnderWay,
                            APeerThatEndsInTheMiddleIsAnErrorWithWhatHasCome,
                            APeerThatIsGoneEndsWrites, HandlersAreCalledOnceAndNotWithinClose,
                            EveryByteIsCountedOnceWhateverReadsAndWritesIt);

}  // namespace muster::net
