#include "job/file/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "absl/status/status.h"
#include "base/text.h"

namespace muster::job_file {
namespace {

/// Thrown to leave yaml-cpp's parser, because there is no other way. ParseYaml catches it.
struct Refused {
  Position position;
  std::string what;
};

Position PositionOf(const YAML::Mark& mark) {
  return {.line = mark.line + 1, .column = mark.column + 1};
}

class TreeBuilder final : public YAML::EventHandler {
 public:
  YamlNode TakeRoot() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    RefuseAnchor(mark, anchor);
    Place(Node(YamlNode::Kind::kNull, mark));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refused{PositionOf(mark), "aliases (*name) are not supported in job files"};
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    RefuseAnchor(mark, anchor);
    RefuseTag(mark, tag);
    YamlNode node = Node(YamlNode::Kind::kScalar, mark);
    node.text = value;
    node.quoted = tag == "!";
    Place(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    RefuseTag(mark, tag);
    Open(YamlNode::Kind::kList, mark, anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    RefuseTag(mark, tag);
    Open(YamlNode::Kind::kMap, mark, anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct OpenNode {
    YamlNode node;
    bool has_key = false;
    YamlNode key;
  };

  static YamlNode Node(YamlNode::Kind kind, const YAML::Mark& mark) {
    YamlNode node;
    node.kind = kind;
    node.position = PositionOf(mark);
    return node;
  }
  static void RefuseAnchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) {
      throw Refused{PositionOf(mark), "anchors (&name) are not supported in job files"};
    }
  }
  static void RefuseTag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    throw Refused{PositionOf(mark), fmt::format("the tag '{}' is not supported in job files", tag)};
  }

  void Open(YamlNode::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    RefuseAnchor(mark, anchor);
    if (open_.size() >= kYamlDepthMax) {
      throw Refused{PositionOf(mark), fmt::format("nested deeper than {} levels", kYamlDepthMax)};
    }
    open_.push_back({.node = Node(kind, mark), .has_key = false, .key = {}});
  }
  void Close() {
    YamlNode node = std::move(open_.back().node);
    open_.pop_back();
    Place(std::move(node));
  }
  /// Puts a finished node into the innermost open list or map. If none is open, it is the root.
  void Place(YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    OpenNode& parent = open_.back();
    if (parent.node.kind == YamlNode::Kind::kList) {
      parent.node.items.push_back(std::move(node));
    } else if (parent.has_key) {
      parent.node.entries.push_back({std::move(parent.key), std::move(node)});
      parent.has_key = false;
    } else if (node.kind == YamlNode::Kind::kScalar) {
      parent.key = std::move(node);
      parent.has_key = true;
    } else {
      throw Refused{node.position, fmt::format("a key must be a name, not {}", Describe(node))};
    }
  }

  YamlNode root_;
  std::vector<OpenNode> open_;
};

absl::Status ErrorAt(const std::string& file, Position position, std::string_view what) {
  return absl::InvalidArgumentError(ErrorLine(file, position, what));
}

}  // namespace

std::string ErrorLine(const std::string& file, Position position, std::string_view what) {
  constexpr size_t kBytesMax = 2000;  // because an error may quote a long part of the file
  return fmt::format("{}:{}:{}: {}", file, position.line, position.column,
                     Excerpt(what, kBytesMax));
}

std::string Describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kScalar: {
      constexpr size_t kShown = 60;
      const std::string shown = Excerpt(node.text, kShown);
      return node.quoted ? fmt::format("the text \"{}\"", shown) : fmt::format("'{}'", shown);
    }
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a group of fields";
  }
  return "something unknown";
}

absl::StatusOr<YamlNode> ParseYaml(std::string_view text, const std::string& file_name) {
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos) {
    const auto line = std::count(text.begin(), text.begin() + zero, '\n') + 1;
    return ErrorAt(file_name, {.line = static_cast<int>(line), .column = 1},
                   "the line contains a zero byte; is this a text file?");
  }
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    TreeBuilder builder;
    if (!parser.HandleNextDocument(builder)) return YamlNode{};
    TreeBuilder second;
    if (parser.HandleNextDocument(second)) {
      return ErrorAt(file_name, second.TakeRoot().position,
                     "a second document begins here; a job file has only one");
    }
    return builder.TakeRoot();
  } catch (const Refused& refused) {
    return ErrorAt(file_name, refused.position, refused.what);
  } catch (const YAML::Exception& exception) {
    return ErrorAt(file_name, PositionOf(exception.mark),
                   fmt::format("this is not valid YAML: {}", exception.msg));
  } catch (const std::exception& exception) {
    return ErrorAt(file_name, {}, fmt::format("the file cannot be parsed: {}", exception.what()));
  }
}

}  // namespace muster::job_file
