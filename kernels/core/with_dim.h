// The number of dimensions as a compile-time constant, where that matters.
#pragma once

#include <type_traits>

namespace lloyd {

/// Calls body with std::integral_constant<int, D>. D is 2 for two dimensions, the case that the
/// studies compiled in: a baseline that looped over `dim` there would inflate every speedup. D is 0
/// for any other number.
template <typename Body>
void with_dim(int dim, Body&& body) {
  if (dim == 2)
    body(std::integral_constant<int, 2>{});
  else
    body(std::integral_constant<int, 0>{});
}

}  // namespace lloyd
