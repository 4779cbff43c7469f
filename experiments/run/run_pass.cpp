#include "experiments/run/run_pass.h"

#include <new>

#include "kernels/core/status.h"
#include "profiling/subject.h"

namespace lloyd {

void run_pass(Workbench& bench, Reply& reply, const std::function<void()>& body) {
  const auto ended = [&reply](const std::string& status, const std::string& reason) {
    reply.status = status;
    reply.reason = reason;
  };
  try {
    body();
    ended(status::ok, "");
  } catch (const profiling::Unavailable& error) {
    ended(status::unsupported, error.what());
  } catch (const Unsupported& error) {
    ended(status::unsupported, error.what());
  } catch (const std::bad_alloc&) {
    ended(status::failed, "out of host memory");
  } catch (const std::exception& error) {
    ended(status::failed, error.what());
    reply.needs_restart = bench.on_gpu();
  }
  reply.needs_restart |= !bench.session().usable();
}

}  // namespace lloyd
