# Finds Open MPI. Defines LLOYD_MPI_ON: ON when the MPI versions are built, into the program's twin.
set(LLOYD_MPI_ON OFF)
if(NOT LLOYD_MPI)
  return()
endif()
set(MPI_CXX_SKIP_MPICXX ON)  # the C++ bindings, which MPI 3 took away
find_package(MPI COMPONENTS CXX)
if(MPI_CXX_FOUND)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_LIBRARIES MPI::MPI_CXX)
  # The launcher's options and the type of a communicator (kernels/core/version.h) are Open MPI's.
  check_cxx_source_compiles("#include <mpi.h>\nompi_communicator_t* world = MPI_COMM_WORLD;\nint main() {}" LLOYD_OPEN_MPI)
  unset(CMAKE_REQUIRED_LIBRARIES)
endif()
if(LLOYD_OPEN_MPI)
  set(LLOYD_MPI_ON ON)
else()
  message(WARNING "Open MPI was not found, so the MPI versions are not built and will be reported as unsupported. "
    "On Debian and Ubuntu it is openmpi-bin and libopenmpi-dev.")
endif()
