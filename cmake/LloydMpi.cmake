# Finds Open MPI. Sets LLOYD_MPI_ON to ON when the MPI versions are built. They are built into the
# program's twin.
set(LLOYD_MPI_ON OFF)
if(NOT LLOYD_MPI)
  return()
endif()
set(MPI_CXX_SKIP_MPICXX ON)  # MPI 3 removed the C++ bindings
find_package(MPI COMPONENTS CXX)
if(MPI_CXX_FOUND)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_LIBRARIES MPI::MPI_CXX)
  # The program uses Open MPI's launcher options and communicator type (kernels/core/version.h).
  check_cxx_source_compiles(
    "#include <mpi.h>\nompi_communicator_t* world = MPI_COMM_WORLD;\nint main() {}" LLOYD_OPEN_MPI)
  unset(CMAKE_REQUIRED_LIBRARIES)
endif()
if(LLOYD_OPEN_MPI)
  set(LLOYD_MPI_ON ON)
else()
  message(WARNING "Open MPI was not found, so the MPI versions are not built and will be reported "
    "as unsupported. On Debian and Ubuntu it is openmpi-bin and libopenmpi-dev.")
endif()
