# The target lloyd_build_info (BuildInfo.cmake) runs this script. A tree without git, such as an
# unpacked archive, has no commit.
set(git git -C ${source_dir} -c safe.directory=*)
execute_process(COMMAND ${git} rev-parse --show-toplevel
  OUTPUT_VARIABLE top ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${git} rev-parse HEAD
  OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${git} log -1 --format=%cs
  OUTPUT_VARIABLE commit_date ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${git} status --porcelain --untracked-files=no
  OUTPUT_VARIABLE changes ERROR_QUIET)
file(REAL_PATH "${source_dir}" real_source_dir)
if(NOT commit OR NOT top STREQUAL real_source_dir)
  set(commit unknown)
  set(commit_date "")
  set(changes "")
endif()
set(dirty false)
if(changes)
  set(dirty true)
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/build_info.h.in ${header} @ONLY ESCAPE_QUOTES)
