// Functions for the vectors that a machine has.
#pragma once

/// Before a function's definition: it is compiled for wider vectors, too, and the machine takes the
/// widest that it has. Where the file is compiled without contraction, the bits are the same
/// everywhere.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define LLOYD_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define LLOYD_CLONES
#endif
