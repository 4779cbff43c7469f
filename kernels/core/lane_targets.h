// The instruction sets that Highway compiles vectors for: the CPU ladder's and the seeding's.
// Include this before foreach_target.h.
#pragma once

// Vectors whose length is known only at run time cannot be in arrays. The other two add nothing
// here to their neighbours SSE4 and AVX3.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_RVV | HWY_SSSE3 | HWY_AVX3_DL)
