// How items are dealt to workers: threads, ranks or parts of a sum.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lloyd {

/// The items [first, last) of worker `me` of `workers`. All parts are equal, except that the first
/// workers take one item more where there is a remainder.
struct Share {
  std::int64_t first, last;
  Share(std::int64_t items, int me, int workers)
      : first(items / workers * me + std::min<std::int64_t>(me, items % workers)),
        last(first + items / workers + (me < items % workers)) {}
  std::int64_t size() const { return last - first; }
};

}  // namespace lloyd
