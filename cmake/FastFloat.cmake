# Finds fast_float. Where a distribution does not have it, the standard library's parser replaces it
# behind the same call.
find_path(FAST_FLOAT_INCLUDE_DIR fast_float/fast_float.h)
if(NOT FAST_FLOAT_INCLUDE_DIR)
  message(STATUS "fast_float was not found: numbers are read by the standard library, more slowly")
  set(FAST_FLOAT_INCLUDE_DIR ${CMAKE_CURRENT_LIST_DIR}/fallback CACHE PATH "" FORCE)
endif()
include_directories(SYSTEM ${FAST_FLOAT_INCLUDE_DIR})
