// Divides the parameters of points into those that all of them share and the rest, so that a table
// names the former once.
#pragma once

#include <string>
#include <vector>

namespace lloyd {

class Parameters {
 public:
  /// `ids`: of the points, such as "cpu_openmp/n:100/k:5/dim:2/threads:2/precision:fp32".
  explicit Parameters(const std::vector<std::string>& ids);

  /// The parameters that have one value wherever they are used: "dim:2 precision:fp32". Empty for a
  /// single point.
  const std::string& shared() const { return shared_; }
  /// The names of the others, in the order of the ids.
  const std::vector<std::string>& varying() const { return varying_; }
  /// What tells a point from the others: "cpu_openmp n:100 k:5".
  std::string name(const std::string& id) const;
  /// The value of a parameter; empty if the point does not use it.
  static std::string value(const std::string& id, const std::string& parameter);

 private:
  std::string shared_;
  std::vector<std::string> varying_;
};

}  // namespace lloyd
