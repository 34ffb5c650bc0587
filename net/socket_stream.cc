#include "net/socket_stream.h"

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <span>
#include <utility>

namespace muster::net {

namespace asio = boost::asio;
using boost::system::error_code;

SocketStream::SocketStream(Socket socket, size_t step_bytes)
    : socket_(std::move(socket)), step_bytes_(step_bytes) {}

auto SocketStream::AllOfIt(size_t Progress::* counted) const {
  return
      [progress = progress_, counted, step = step_bytes_](const error_code& error, size_t bytes) {
        progress->Count(bytes, &(progress.get()->*counted));
        return error ? size_t{0} : step;
      };
}

auto SocketStream::AtTheEnd(size_t Progress::* counted, Handler done) const {
  return [progress = progress_, counted, done = std::move(done)](const error_code& error,
                                                                 size_t bytes) mutable {
    progress->Count(bytes, &(progress.get()->*counted));
    progress.get()->*counted = 0;
    done(error, bytes);
  };
}

void SocketStream::ReadSome(asio::mutable_buffer into, Handler done) {
  socket_.async_read_some(into, AtTheEnd(&Progress::reading, std::move(done)));
}

void SocketStream::Read(std::vector<asio::mutable_buffer> into, Handler done) {
  asio::async_read(socket_, std::move(into), AllOfIt(&Progress::reading),
                   AtTheEnd(&Progress::reading, std::move(done)));
}

void SocketStream::ReadOne(asio::mutable_buffer into, Handler done) {
  asio::async_read(socket_, into, AllOfIt(&Progress::reading),
                   AtTheEnd(&Progress::reading, std::move(done)));
}

void SocketStream::Write(std::vector<asio::const_buffer> from, Handler done) {
  progress_->write_list = std::move(from);  // the handler keeps it
  asio::async_write(socket_, std::span<const asio::const_buffer>(progress_->write_list),
                    AllOfIt(&Progress::writing), AtTheEnd(&Progress::writing, std::move(done)));
}

std::vector<asio::const_buffer> SocketStream::SpareList() {
  MUSTER_CHECK(progress_->writing == 0);
  std::vector<asio::const_buffer> list = std::move(progress_->write_list);
  list.clear();
  return list;
}

void SocketStream::ShutdownSend() {
  error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
}

void SocketStream::Close() {
  error_code ignored;
  socket_.close(ignored);
}

}  // namespace muster::net
