# The target lloyd_build_info keeps generated/build_info.h up to date in every build and touches it
# only when it changes. A target that includes "build_info.h" needs add_dependencies(<target>
# lloyd_build_info).
string(TOUPPER "${CMAKE_BUILD_TYPE}" upper_build_type)
string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${upper_build_type}}" cxx_flags)
set(cuda_version "")
set(cuda_architectures "")
if(LLOYD_CUDA_ON)
  set(cuda_version ${CMAKE_CUDA_COMPILER_VERSION})
  string(REPLACE ";" " " cuda_architectures "${CMAKE_CUDA_ARCHITECTURES}")
endif()
set(build_info_command ${CMAKE_COMMAND}
  -D source_dir=${CMAKE_SOURCE_DIR}
  -D header=${CMAKE_BINARY_DIR}/generated/build_info.h
  -D version=${PROJECT_VERSION}
  -D "compiler=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
  -D "cxx_flags=${cxx_flags}"
  -D build_type=${CMAKE_BUILD_TYPE}
  -D cuda_version=${cuda_version}
  -D "cuda_architectures=${cuda_architectures}"
  -P ${CMAKE_CURRENT_LIST_DIR}/WriteBuildInfo.cmake)
add_custom_target(lloyd_build_info ALL COMMAND ${build_info_command}
  BYPRODUCTS ${CMAKE_BINARY_DIR}/generated/build_info.h COMMENT "Build information" VERBATIM)
