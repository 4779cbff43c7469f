// The vendor's own figures, to stand beside what was measured.
#pragma once

#include <optional>
#include <string>

namespace lloyd::profiling {

struct DatasheetFigure {
  std::optional<double> value;  // GB/s or TFLOP/s, dense
  std::string source;           // the document, or why there is no figure
};

/// `gpu` as CUDA names it; `ceiling` as measure_gpu_ceilings() does.
DatasheetFigure datasheet(const std::string& gpu, const std::string& ceiling);

}  // namespace lloyd::profiling
