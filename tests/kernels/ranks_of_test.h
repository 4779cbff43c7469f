// The ranks of mpi_tests, as its tests see them on rank 0.
#pragma once

#include <memory>

#include "experiments/measure/session.h"

namespace lloyd {

std::unique_ptr<Session> leader_session();
/// On `gpus` GPUs of each rank, which may be those of other ranks, too.
std::unique_ptr<Session> leader_session_on_gpus(int gpus);

}  // namespace lloyd
