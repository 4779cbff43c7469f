#include "profiling/range_log.h"

namespace lloyd::profiling {

void RangeLog::part(const char* name, const std::function<void()>& body) {
  begin(Level::part, name, 0);
  body();
  end();
}

void RangeLog::begin(Level level, const char* name, int iteration) {
  open_.push_back(ranges_.size());
  ranges_.push_back({level, name, iteration, 0, 0});
  ranges_.back().begin_ns = clock_();  // last, so that the lines above are outside the range
}

void RangeLog::end() {
  const std::int64_t now = clock_();
  ranges_[open_.back()].end_ns = now;
  open_.pop_back();
}

RangeLog::Where RangeLog::at(std::int64_t ns) const {
  Where where;
  for (const Range& range : ranges_) {
    if (range.begin_ns > ns) break;  // all further ranges begin later
    if (range.end_ns < ns) continue;
    if (range.level == Level::part) where.part = range.name;
    if (range.level == Level::iteration) where.iteration = range.iteration;
    if (range.level == Level::phase) where.phase = range.name;
  }
  return where;
}

}  // namespace lloyd::profiling
