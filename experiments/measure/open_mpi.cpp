#include "experiments/measure/open_mpi.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace lloyd {
namespace {

constexpr const char* kName = "libmpi.so.40";  // of Open MPI 3 to 5

// Waiting ranks sleep between two tests, so that rank 0 has the cores for data and verification.
constexpr int kNapMicroseconds = 100;

// Bytes or values of one call.
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;

// Calls body(first, count) for as many values at once as MPI, which counts in int, takes.
template <typename T, typename Body>
void in_pieces(std::span<T> values, Body&& body) {
  for (std::size_t first = 0; first < values.size(); first += kMostAtOnce)
    body(values.data() + first, static_cast<int>(std::min(kMostAtOnce, values.size() - first)));
}

}  // namespace

// The few declarations of mpi.h that we need. A handle is a pointer to an object of the library.
// tests/kernels/mpi_versions.cpp compares the constants with those of mpi.h.
class OpenMpi::Library {
 public:
  using Handle = void*;  // a communicator, a datatype, an operation or a request

  Library() {
    // Its plugins look for its symbols. It stays open, since it leaves threads and handlers behind.
    if (dlopen(kName, RTLD_NOW | RTLD_GLOBAL) == nullptr)
      throw std::runtime_error(fmt::format("cannot open {}: {}", kName, dlerror()));
    find("MPI_Init_thread", init);
    find("MPI_Finalize", finalize);
    find("MPI_Abort", abort);
    find("MPI_Comm_rank", comm_rank);
    find("MPI_Comm_size", comm_size);
    find("MPI_Barrier", barrier);
    find("MPI_Ibcast", ibcast);
    find("MPI_Test", test);
    find("MPI_Send", send);
    find("MPI_Recv", receive);
    find("MPI_Allgather", allgather);
    find("MPI_Allreduce", allreduce);
    find("ompi_mpi_comm_world", world);
    find("ompi_mpi_byte", byte);
    find("ompi_mpi_double", fp64);
    find("ompi_mpi_float", fp32);
    find("ompi_mpi_uint64_t", uint64);
    find("ompi_mpi_uint32_t", uint32);
    find("ompi_mpi_op_sum", sum);
    find("ompi_mpi_op_max", largest);
  }

  static void check(int status, const char* called) {
    if (status != 0) throw std::runtime_error(fmt::format("{}: MPI error {}", called, status));
  }

  int (*init)(int*, char***, int, int*) = nullptr;
  int (*finalize)() = nullptr;
  int (*abort)(Handle, int) = nullptr;
  int (*comm_rank)(Handle, int*) = nullptr;
  int (*comm_size)(Handle, int*) = nullptr;
  int (*barrier)(Handle) = nullptr;
  int (*ibcast)(void*, int, Handle, int, Handle, Handle*) = nullptr;
  int (*test)(Handle*, int*, void*) = nullptr;
  int (*send)(const void*, int, Handle, int, int, Handle) = nullptr;
  int (*receive)(void*, int, Handle, int, int, Handle, void*) = nullptr;
  int (*allgather)(const void*, int, Handle, void*, int, Handle, Handle) = nullptr;
  int (*allreduce)(const void*, void*, int, Handle, Handle, Handle) = nullptr;
  Handle world = nullptr;
  Handle byte = nullptr, fp64 = nullptr, fp32 = nullptr, uint64 = nullptr, uint32 = nullptr;
  Handle sum = nullptr, largest = nullptr;

  static constexpr int kFunneled = 1;                             // MPI_THREAD_FUNNELED
  static constexpr void* kIgnored = nullptr;                      // MPI_STATUS_IGNORE
  static void* in_place() { return reinterpret_cast<void*>(1); }  // MPI_IN_PLACE

 private:
  template <typename Pointer>
  void find(const char* name, Pointer& pointer) {
    // In the global scope, since a program that is linked with MPI may have its own copy of an
    // object, which the library then uses, too (copy relocation).
    pointer = reinterpret_cast<Pointer>(dlsym(RTLD_DEFAULT, name));
    if (pointer == nullptr) throw std::runtime_error(fmt::format("{} has no {}", kName, name));
  }
};

std::string no_open_mpi() {
  void* library = dlopen(kName, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return fmt::format("cannot open {}: {}", kName, dlerror());
  dlclose(library);
  return "";
}

OpenMpi::OpenMpi() : mpi_(std::make_unique<const Library>()) {
  int threads = 0;
  Library::check(mpi_->init(nullptr, nullptr, Library::kFunneled, &threads), "MPI_Init_thread");
  if (threads < Library::kFunneled)
    throw std::runtime_error("this MPI was built without threads (MPI_THREAD_FUNNELED)");
  Library::check(mpi_->comm_rank(mpi_->world, &rank_), "MPI_Comm_rank");
  Library::check(mpi_->comm_size(mpi_->world, &size_), "MPI_Comm_size");
  // mpirun numbers the ranks of each host.
  if (const char* local = std::getenv("OMPI_COMM_WORLD_LOCAL_RANK")) local_rank_ = std::atoi(local);
}

OpenMpi::~OpenMpi() { mpi_->finalize(); }

ompi_communicator_t* OpenMpi::communicator() const {
  return static_cast<ompi_communicator_t*>(mpi_->world);
}

template <typename T>
void OpenMpi::reduce(std::span<T> values, void* type, void* operation) {
  in_pieces(values, [&](T* first, int count) {
    Library::check(mpi_->allreduce(Library::in_place(), first, count, type, operation, mpi_->world),
                   "MPI_Allreduce");
  });
}

void OpenMpi::barrier() { Library::check(mpi_->barrier(mpi_->world), "MPI_Barrier"); }

void OpenMpi::broadcast(std::span<std::byte> bytes) {
  in_pieces(bytes, [&](std::byte* first, int count) {
    Library::Handle request = nullptr;
    Library::check(mpi_->ibcast(first, count, mpi_->byte, 0, mpi_->world, &request), "MPI_Ibcast");
    for (int arrived = 0;;) {
      Library::check(mpi_->test(&request, &arrived, Library::kIgnored), "MPI_Test");
      if (arrived != 0) break;
      usleep(kNapMicroseconds);
    }
  });
}

void OpenMpi::send(std::span<const std::byte> bytes, int to) {
  in_pieces(bytes, [&](const std::byte* first, int count) {
    Library::check(mpi_->send(first, count, mpi_->byte, to, 0, mpi_->world), "MPI_Send");
  });
}

void OpenMpi::receive(std::span<std::byte> bytes, int from) {
  in_pieces(bytes, [&](std::byte* first, int count) {
    Library::check(mpi_->receive(first, count, mpi_->byte, from, 0, mpi_->world, Library::kIgnored),
                   "MPI_Recv");
  });
}

std::vector<std::byte> OpenMpi::gather(std::span<const std::byte> bytes) {
  std::vector<std::byte> all(bytes.size() * static_cast<std::size_t>(size_));
  const auto count = static_cast<int>(bytes.size());
  Library::check(
      mpi_->allgather(bytes.data(), count, mpi_->byte, all.data(), count, mpi_->byte, mpi_->world),
      "MPI_Allgather");
  return all;
}

void OpenMpi::sum(std::span<double> values) { reduce(values, mpi_->fp64, mpi_->sum); }
void OpenMpi::sum(std::span<float> values) { reduce(values, mpi_->fp32, mpi_->sum); }
void OpenMpi::sum(std::span<std::uint64_t> values) { reduce(values, mpi_->uint64, mpi_->sum); }
void OpenMpi::sum(std::span<std::uint32_t> values) { reduce(values, mpi_->uint32, mpi_->sum); }
void OpenMpi::largest(std::span<double> values) { reduce(values, mpi_->fp64, mpi_->largest); }

void OpenMpi::abort(int status) {
  mpi_->abort(mpi_->world, status);
  std::_Exit(status);  // MPI_Abort does not return
}

}  // namespace lloyd
