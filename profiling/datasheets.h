// The vendor's figures, for comparison with the measured ceilings.
#pragma once

#include <optional>
#include <string>

namespace lloyd::profiling {

struct DatasheetFigure {
  std::optional<double> value;  // GB/s or TFLOP/s, dense
  std::string source;           // the document, or why there is no figure
};

/// `gpu` is CUDA's name of the device, `ceiling` a name that measure_gpu_ceilings() uses.
DatasheetFigure datasheet(const std::string& gpu, const std::string& ceiling);

}  // namespace lloyd::profiling
