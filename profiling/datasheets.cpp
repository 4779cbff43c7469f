#include "profiling/datasheets.h"

#include <array>
#include <string_view>

#include "profiling/ceilings.h"

namespace lloyd::profiling {
namespace {

constexpr double kNone = 0;

// Rates in TFLOP/s without sparsity, at the vendor's boost clock. Documents give both directions of
// NVLink together, this table one of them. 0: the document has no figure, or it is that of a bridge
// which a card may lack.
struct Sheet {
  std::string_view gpu;
  double dram_gb_s, peer_gb_s;
  double fp64, fp64_tensor, fp32, tf32, half;  // half: fp16 and bf16, sums in fp32
  std::string_view source;
};

constexpr std::array kSheets{
    Sheet{"NVIDIA H200", 4800, 450, 34, 67, 67, 494.5, 989.5, "NVIDIA H200 datasheet, SXM"},
    Sheet{"NVIDIA H200 NVL", 4800, kNone, 30, 60, 60, 417.5, 835.5, "NVIDIA H200 datasheet, NVL"},
    Sheet{"NVIDIA H100 80GB HBM3", 3350, 450, 34, 67, 67, 494.5, 989.5,
          "NVIDIA H100 datasheet, SXM"},
    Sheet{"NVIDIA H100 NVL", 3900, kNone, 30, 60, 60, 417.5, 835.5, "NVIDIA H100 datasheet, NVL"},
    Sheet{"NVIDIA H100 PCIe", 2000, kNone, 26, 51, 51, 378, 756, "NVIDIA H100 datasheet, PCIe"},
    Sheet{"NVIDIA A100-SXM4-80GB", 2039, 300, 9.7, 19.5, 19.5, 156, 312,
          "NVIDIA A100 datasheet, SXM 80 GB"},
    Sheet{"NVIDIA A100-SXM4-40GB", 1555, 300, 9.7, 19.5, 19.5, 156, 312,
          "NVIDIA A100 datasheet, SXM 40 GB"},
    Sheet{"NVIDIA A100 80GB PCIe", 1935, kNone, 9.7, 19.5, 19.5, 156, 312,
          "NVIDIA A100 datasheet, PCIe 80 GB"},
    Sheet{"NVIDIA A100-PCIE-40GB", 1555, kNone, 9.7, 19.5, 19.5, 156, 312,
          "NVIDIA A100 datasheet, PCIe 40 GB"},
    Sheet{"NVIDIA A10", 600, kNone, kNone, kNone, 31.2, 62.5, 125, "NVIDIA A10 datasheet"},
    Sheet{"NVIDIA L40S", 864, kNone, kNone, kNone, 91.6, 183, 362, "NVIDIA L40S datasheet"},
    Sheet{"NVIDIA L4", 300, kNone, kNone, kNone, 30.3, 60, 121, "NVIDIA L4 datasheet"},
    Sheet{"Tesla T4", 320, kNone, kNone, kNone, 8.1, kNone, 65, "NVIDIA T4 datasheet"},
    Sheet{"NVIDIA GeForce RTX 4090", 1008, kNone, 1.3, kNone, 82.6, 82.6, 165.2,
          "NVIDIA Ada GPU architecture whitepaper"},
    Sheet{"NVIDIA GeForce RTX 3090", 936, kNone, 0.56, kNone, 35.6, 35.6, 71,
          "NVIDIA Ampere GA102 architecture whitepaper"},
};

double figure_of(const Sheet& sheet, std::string_view ceiling) {
  if (ceiling.ends_with(kSustained)) ceiling.remove_suffix(kSustained.size());
  if (ceiling == "dram_copy" || ceiling == "dram_read") return sheet.dram_gb_s;
  if (ceiling == "peer_copy") return sheet.peer_gb_s;
  if (ceiling == "fp64_fma") return sheet.fp64;
  if (ceiling == "fp64_tensor") return sheet.fp64_tensor;
  if (ceiling == "fp32_fma") return sheet.fp32;
  if (ceiling == "tf32_tensor") return sheet.tf32;
  if (ceiling == "fp16_tensor") return sheet.half;
  if (ceiling == "bf16_tensor") return sheet.gpu == "Tesla T4" ? kNone : sheet.half;
  return kNone;
}

}  // namespace

DatasheetFigure datasheet(const std::string& gpu, const std::string& ceiling) {
  for (const Sheet& sheet : kSheets) {
    if (sheet.gpu != gpu) continue;
    const double value = figure_of(sheet, ceiling);
    if (value > 0) return {value, std::string(sheet.source)};
    return {std::nullopt, std::string(sheet.source) + " has no such figure"};
  }
  return {std::nullopt, "no datasheet of '" + gpu + "' is known (profiling/datasheets.cpp)"};
}

}  // namespace lloyd::profiling
