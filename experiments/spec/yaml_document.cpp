#include "experiments/spec/yaml_document.h"

#include <fmt/format.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <sstream>

#include "experiments/text/text.h"

namespace lloyd {
namespace {

/// Notes where a document begins, and refuses scalars that are not UTF-8: yaml-cpp replaces the
/// escapes \N and \_ by one byte of Latin-1, also after a NUL byte in a plain scalar.
class DocumentStart : public YAML::EventHandler {
 public:
  YAML::Mark mark;

  void OnDocumentStart(const YAML::Mark& at) override { mark = at; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark& at, const std::string&, YAML::anchor_t,
                const std::string& value) override {
    if (invalid_utf8(value) != std::string::npos)
      throw YAML::ParserException(
          at, "an escape here does not give UTF-8; write the character instead of \\N or \\_");
  }
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

/// Where a second document begins. YAML::Load drops what follows the first without a word, and
/// YAML::LoadAll never ends when that is no document.
std::optional<YAML::Mark> second_document(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStart start;
  if (!parser.HandleNextDocument(start) || !parser.HandleNextDocument(start)) return std::nullopt;
  return start.mark;
}

/// Names the first line that is indented with a tab, which YAML does not allow. Else empty.
std::string hint_at_tabs(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::size_t indent = std::min(line.find_first_not_of(" \t"), line.size());
    if (line.find('\t') < indent)
      return fmt::format(" (line {} is indented with a tab; YAML takes spaces)", number);
  }
  return "";
}

}  // namespace

std::optional<YAML::Node> parse_document(const std::string& text, Errors& errors) {
  YAML::Node document;
  std::optional<YAML::Mark> second;
  try {
    second = second_document(text);
    document = YAML::Load(text);
  } catch (const YAML::DeepRecursion&) {
    errors.add({1, 1, ""}, "not valid YAML: nested too deeply");
    return std::nullopt;
  } catch (const YAML::Exception& error) {
    // A mark is null (-1) when yaml-cpp cannot tell.
    const Place place{std::max(error.mark.line, 0) + 1, std::max(error.mark.column, 0) + 1, ""};
    const bool alias = error.msg.find("anchor") != std::string::npos;
    // Newer versions of yaml-cpp repeat the name of the anchor, which need not be one.
    const std::string said = alias ? error.msg.substr(0, error.msg.find(':')) : error.msg;
    errors.add(place,
               // It quotes single bytes of a character.
               fmt::format("not valid YAML: {}{}{}", valid_utf8(said),
                           alias ? " (a glob that begins with * needs quotes: \"*_fused\")" : "",
                           hint_at_tabs(text)));
    return std::nullopt;
  }
  if (second) {
    errors.add({second->line + 1, second->column + 1, ""},
               "the spec ends before this; it is a second document, or out of place");
    return std::nullopt;
  }
  if (document.IsNull()) {
    errors.add({1, 1, ""}, "the spec is empty; it needs name, versions and axes");
    return std::nullopt;
  }
  return document;
}

}  // namespace lloyd
