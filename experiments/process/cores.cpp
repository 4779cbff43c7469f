#include "experiments/process/cores.h"

#include <omp.h>

namespace lloyd {

int available_cores() { return omp_get_num_procs(); }

}  // namespace lloyd
