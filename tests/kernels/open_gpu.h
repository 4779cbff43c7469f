// A session on the first GPU, for tests that run versions there.
#pragma once

#include <memory>
#include <string>

#include "experiments/measure/session.h"
#include "kernels/core/device.h"
#include "kernels/core/version.h"

namespace lloyd {

/// Opens a session on the first GPU and gives `context` its stream and limits. Returns why it
/// cannot, or nothing.
inline std::string open_gpu(std::unique_ptr<Session>& session, Context& context) {
  const DeviceQuery query = query_devices();
  if (query.devices.empty()) return query.problem;
#if LLOYD_CUDA
  session = make_cuda_session(0);
#endif
  context.device = query.devices.front();
  context.stream = session->stream();
  return {};
}

}  // namespace lloyd
