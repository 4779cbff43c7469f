# Finds the CUDA toolkit and chooses the architectures. Sets LLOYD_CUDA_ON to ON when the CUDA
# versions are built.
string(CONCAT architectures_help "CUDA architectures, as CMAKE_CUDA_ARCHITECTURES; "
  "empty: this machine's GPUs, else 'portable'; portable: every GPU from Turing on")
set(LLOYD_CUDA_ARCHITECTURES "" CACHE STRING "${architectures_help}")
set(LLOYD_CUDA_ON OFF)
if(NOT LLOYD_CUDA)
  return()
endif()

if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  execute_process(COMMAND ${CMAKE_SOURCE_DIR}/tools/find-cuda.sh
    OUTPUT_VARIABLE nvcc ERROR_VARIABLE passed_over OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT nvcc)
    message(WARNING "No CUDA 13 toolkit was found, so the CUDA versions are not built and will be "
      "reported as unsupported.\n${passed_over}`make` installs one into .venv; or set CUDA_HOME or "
      "-DCMAKE_CUDA_COMPILER to your own.")
    return()
  endif()
  set(CMAKE_CUDA_COMPILER ${nvcc} CACHE FILEPATH "CUDA compiler")
endif()

# The architectures are always set before enable_language: the CMake of the distributions does not
# know nvcc 13's default, nor "native". The variable must not be named `architectures`, which CMake
# 3.22's own search for the compiler reads.
set(gpu_architectures ${LLOYD_CUDA_ARCHITECTURES})
if(NOT gpu_architectures)
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
    RESULT_VARIABLE smi_status OUTPUT_VARIABLE gpu_architectures ERROR_QUIET
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REGEX REPLACE "[. ]" "" gpu_architectures "${gpu_architectures}")
  string(REPLACE "\n" ";" gpu_architectures "${gpu_architectures}")
  list(REMOVE_DUPLICATES gpu_architectures)
  if(NOT smi_status STREQUAL "0" OR NOT gpu_architectures MATCHES "^[0-9;]+$")
    set(gpu_architectures portable)
  endif()
endif()
if(gpu_architectures STREQUAL "portable")
  # 75 includes PTX, which newer GPUs compile when they load it. Data-centre GPUs get native code.
  set(gpu_architectures 75 80-real 90-real 100-real)
endif()
set(CMAKE_CUDA_ARCHITECTURES ${gpu_architectures})

if(NOT CMAKE_CUDA_HOST_COMPILER AND NOT DEFINED ENV{CUDAHOSTCXX})
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
endif()
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
if(NOT LLOYD_NVCC_WORKS AND NOT DEFINED ENV{CUDACXX})
  # An nvcc may be too old for the host's compiler or C library, as CUDA 13.0 is for glibc 2.42.
  set(probe ${CMAKE_BINARY_DIR}/CMakeFiles/nvcc_works)
  file(WRITE ${probe}.cu "#include <cmath>\n__global__ void kernel() {}\n")
  execute_process(
    COMMAND ${CMAKE_CUDA_COMPILER} -ccbin ${CMAKE_CUDA_HOST_COMPILER} -c ${probe}.cu -o ${probe}.o
    RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(failed)
    string(REGEX MATCH "[^\n]*error[^\n]*" reason "${said}")
    message(WARNING "${CMAKE_CUDA_COMPILER} does not work with this system's compiler and C "
      "library, so the CUDA versions are not built and will be reported as unsupported:\n"
      "${reason}\nInstall a newer CUDA 13 and set CUDA_HOME, or name an older compiler with "
      "-DCMAKE_CUDA_HOST_COMPILER.")
    unset(CMAKE_CUDA_COMPILER CACHE)
    return()
  endif()
  set(LLOYD_NVCC_WORKS ON CACHE INTERNAL "")
endif()
enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13)
  message(FATAL_ERROR "${CMAKE_CUDA_COMPILER} is of CUDA ${CMAKE_CUDA_COMPILER_VERSION}; "
    "lloydbench needs 13.0 or newer. Name another with -DCMAKE_CUDA_COMPILER=…, or build without "
    "CUDA: -DLLOYD_CUDA=OFF")
endif()
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  # CMake 3.22 and 3.25 do not know that nvcc has C++20, and would refuse CMAKE_CXX_STANDARD 20.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
# nvcc draws random names for what is local to a file. With a seed, a file that is compiled again in
# the same folder differs in one symbol only: the name of a temporary file.
string(APPEND CMAKE_CUDA_COMPILE_OBJECT " -frandom-seed=<OBJECT>")
find_package(CUDAToolkit REQUIRED)
set(LLOYD_CUDA_ON ON)
message(STATUS "CUDA ${CUDAToolkit_VERSION} for architectures ${CMAKE_CUDA_ARCHITECTURES}")
