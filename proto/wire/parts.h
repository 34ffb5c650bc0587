#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace muster::wire {

/// The version of a group whose rows have none, as in every push.
inline constexpr uint64_t kUnversioned = UINT64_MAX;
/// The version that no rows have. In a request: the worker holds none of the rows. In an answer:
/// the server does not know their version.
inline constexpr uint64_t kNoVersion = 0;

/// Keys of one table in one partition; their keys and values follow in the blocks in this order.
struct Group {
  uint32_t table = 0;
  uint32_t keys = 0;
  /// In a pull: the version of these rows that the worker holds, received under the part's owner
  /// epoch. The answer has their present version.
  uint64_t version = kUnversioned;
  bool versioned() const { return version != kUnversioned; }
  /// True if an answer of this version means that the worker already has the rows, so none are
  /// sent.
  bool Unchanged(uint64_t answered) const {
    return versioned() && version != kNoVersion && version == answered;
  }
  friend bool operator==(const Group&, const Group&) = default;
};

/// A request's part for one partition: in a pull, its rows; in a push, the part of the minibatch
/// that is applied as a whole or not at all. The Parts object owns the groups.
struct Part {
  uint32_t partition = 0;
  uint64_t owner_epoch = 0;
  std::span<const Group> groups;
  friend bool operator==(const Part& a, const Part& b) {
    return a.partition == b.partition && a.owner_epoch == b.owner_epoch &&
           std::ranges::equal(a.groups, b.groups);
  }
};

/// The parts of a request in order. Their groups lie in one array, so new requests need no new
/// memory. A value; not thread-safe.
class Parts {
 public:
  class Iterator {
   public:
    using value_type = Part;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Iterator(const Parts* parts, size_t at) : parts_(parts), at_(at) {}
    Part operator*() const { return (*parts_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return {parts_, at_++}; }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const Parts* parts_ = nullptr;
    size_t at_ = 0;
  };

  Parts() = default;
  /// One part.
  Parts(uint32_t partition, uint64_t owner_epoch, std::initializer_list<Group> groups) {
    Add(partition, owner_epoch, groups);
  }

  /// Appends a part with these groups.
  void Add(uint32_t partition, uint64_t owner_epoch, std::initializer_list<Group> groups = {}) {
    parts_.push_back({partition, owner_epoch, groups_.size()});
    for (const Group& group : groups) AddGroup(group);
  }
  /// Appends a group to the last part.
  void AddGroup(const Group& group) {
    groups_.push_back(group);
    if (group.versioned()) ++version_count_;
  }
  /// Keeps the memory.
  void Clear() {
    parts_.clear();
    groups_.clear();
    version_count_ = 0;
  }
  void Reserve(size_t parts, size_t groups) {
    parts_.reserve(parts);
    groups_.reserve(groups);
  }

  size_t size() const { return parts_.size(); }
  bool empty() const { return parts_.empty(); }
  /// Of memory that it holds.
  size_t capacity_bytes() const {
    return parts_.capacity() * sizeof(Entry) + groups_.capacity() * sizeof(Group);
  }
  /// Of all parts.
  size_t group_count() const { return groups_.size(); }
  /// Of those that have a version.
  size_t version_count() const { return version_count_; }
  /// Valid until the next change.
  Part operator[](size_t at) const {
    const size_t begin = parts_[at].group_begin;
    const size_t end = at + 1 < parts_.size() ? parts_[at + 1].group_begin : groups_.size();
    return {parts_[at].partition, parts_[at].owner_epoch,
            std::span(groups_).subspan(begin, end - begin)};
  }
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, parts_.size()}; }
  friend bool operator==(const Parts& a, const Parts& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  struct Entry {
    uint32_t partition = 0;
    uint64_t owner_epoch = 0;
    size_t group_begin = 0;
  };
  std::vector<Entry> parts_;
  std::vector<Group> groups_;
  size_t version_count_ = 0;
};

}  // namespace muster::wire
