// The tile unit of Intel's AMX (Intel 64 and IA-32 Architectures Software Developer's Manual,
// volume 2: LDTILECFG, TILELOADD, TDPBF16PS, TILESTORED). TDPBF16PS multiplies bf16 exactly and
// adds in fp32, rounded to nearest, with numbers below the normal ones as 0.
#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LLOYD_TILE_TARGET \
  __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512dq,avx512vl")))
#include "kernels/fast_cpu/amx/engine-inl.h"

namespace lloyd::fast_cpu::amx {
namespace {

// What LDTILECFG reads: all eight tiles have 16 rows of 64 bytes.
struct alignas(64) Configuration {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(Configuration) == 64);
// Not on the stack: the compiler does not know that LDTILECFG reads all of it.
constexpr Configuration kConfiguration;

// Tiles 0 to 3 are the sums, 4 and 5 have centroids, 6 and 7 points. Each tile is loaded as soon as
// the last product with what was there before is under way.
class Unit {
 public:
  LLOYD_TILE_TARGET Unit() { _tile_loadconfig(&kConfiguration); }
  LLOYD_TILE_TARGET ~Unit() { _tile_release(); }
  Unit(const Unit&) = delete;

  LLOYD_TILE_TARGET void zero() {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }

  LLOYD_TILE_TARGET void multiply(const std::uint16_t* c, const std::uint16_t* x) {
    constexpr int kHigh0 = 0, kHigh1 = kTileValues, kLow0 = 2 * kTileValues,
                  kLow1 = 3 * kTileValues, kStride = 64;
    _tile_loadd(4, c + kHigh0, kStride);
    _tile_loadd(6, x + kLow0, kStride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, c + kHigh1, kStride);
    _tile_dpbf16ps(2, 5, 6);
    _tile_loadd(7, x + kLow1, kStride);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
    _tile_loadd(6, x + kHigh0, kStride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(2, 5, 6);
    _tile_loadd(7, x + kHigh1, kStride);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(4, c + kLow0, kStride);
    _tile_dpbf16ps(3, 5, 7);
    _tile_loadd(5, c + kLow1, kStride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }

  LLOYD_TILE_TARGET void store(Sums& sums) {
    _tile_stored(0, sums[0], 64);
    _tile_stored(1, sums[1], 64);
    _tile_stored(2, sums[2], 64);
    _tile_stored(3, sums[3], 64);
  }
};

constexpr int kRequestPermission = 0x1023, kTileData = 18;  // of arch_prctl()

}  // namespace

const Engine& hardware() { return kEngineOf<Unit>; }

std::optional<std::string> why_not() {
  __builtin_cpu_init();  // this may run before main()
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || (edx & kBf16) == 0 ||
      (edx & kTile) == 0 || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
    return "needs AMX (bf16), which this CPU does not have";
  static const long refused = syscall(SYS_arch_prctl, kRequestPermission, kTileData);
  if (refused != 0) return "needs AMX (bf16), which the kernel does not permit (Linux 5.16 does)";
  return std::nullopt;
}

}  // namespace lloyd::fast_cpu::amx
#else
#include <stdexcept>

#include "kernels/fast_cpu/amx/engine.h"

namespace lloyd::fast_cpu::amx {

const Engine& hardware() { throw std::logic_error("AMX is x86-64's"); }
std::optional<std::string> why_not() { return "needs AMX (bf16), which only x86-64 CPUs have"; }

}  // namespace lloyd::fast_cpu::amx
#endif
