# Finds RE2, which matches regular expressions in time that is linear in the text, whatever the
# pattern. Defines the target re2::re2. Where a distribution has no CMake package of RE2 (Debian
# 12), the target is made from the header and the library.
find_package(re2 CONFIG QUIET)
if(NOT TARGET re2::re2)
  find_path(RE2_INCLUDE_DIR re2/re2.h)
  find_library(RE2_LIBRARY re2)
  if(NOT RE2_INCLUDE_DIR OR NOT RE2_LIBRARY)
    message(FATAL_ERROR "RE2 is needed: apt-get install libre2-dev")
  endif()
  add_library(re2::re2 UNKNOWN IMPORTED)
  set_target_properties(re2::re2 PROPERTIES IMPORTED_LOCATION ${RE2_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${RE2_INCLUDE_DIR})
endif()
