#include "experiments/record/parameters.h"

#include <algorithm>
#include <map>
#include <set>

#include "experiments/text/text.h"

namespace lloyd {
namespace {

std::vector<std::string> pieces_of(const std::string& id) {
  std::vector<std::string> pieces;
  for (std::size_t begin = 0; begin <= id.size();) {
    const std::size_t end = std::min(id.find('/', begin), id.size());
    pieces.push_back(id.substr(begin, end - begin));
    begin = end + 1;
  }
  return pieces;
}

std::string name_of(const std::string& piece) { return piece.substr(0, piece.find(':')); }

}  // namespace

Parameters::Parameters(const std::vector<std::string>& ids) {
  // Each name is inserted behind the one that it follows in an id, because an axis that the first
  // points do not use belongs between others.
  std::vector<std::string> names;
  std::map<std::string, std::set<std::string>> values;
  for (const std::string& id : ids) {
    const std::vector<std::string> pieces = pieces_of(id);
    for (std::size_t i = 1, at = 0; i < pieces.size(); ++i) {
      const std::string name = name_of(pieces[i]);
      if (values[name].empty()) names.insert(names.begin() + static_cast<std::ptrdiff_t>(at), name);
      values[name].insert(pieces[i]);
      at = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin()) + 1;
    }
  }
  for (const std::string& name : names) {
    if (ids.size() == 1 || values[name].size() > 1)
      varying_.push_back(name);
    else
      shared_ += (shared_.empty() ? "" : " ") + *values[name].begin();
  }
}

std::string Parameters::name(const std::string& id) const {
  const std::vector<std::string> pieces = pieces_of(id);
  std::string text = pieces[0];
  for (std::size_t i = 1; i < pieces.size(); ++i)
    if (contains(varying_, name_of(pieces[i]))) text += ' ' + pieces[i];
  return text;
}

std::string Parameters::value(const std::string& id, const std::string& parameter) {
  for (const std::string& piece : pieces_of(id))
    if (piece.size() > parameter.size() && piece[parameter.size()] == ':' &&
        piece.starts_with(parameter))
      return piece.substr(parameter.size() + 1);
  return "";
}

}  // namespace lloyd
