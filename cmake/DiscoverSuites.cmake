# Makes one test of ctest of each suite of a GoogleTest program, and several of a large one. ctest
# includes this when it starts. A process for each case, as of gtest_discover_tests(), would spend
# most of its time on starting. The cases are in the reports that GoogleTest writes.
# LLOYD_TESTS_LEFT_OUT in the environment is a pattern of GoogleTest for cases to leave out.

set(cases_per_process 50)

function(discover_suites program reports)
  if(NOT EXISTS ${program})
    get_filename_component(name ${program} NAME)
    add_test(${name}_NOT_BUILT NOT_AVAILABLE)
    return()
  endif()
  set(left_out "$ENV{LLOYD_TESTS_LEFT_OUT}")
  if(left_out)
    set(left_out ":-${left_out}")
  endif()
  execute_process(COMMAND ${program} --gtest_list_tests --gtest_filter=*${left_out}
    OUTPUT_VARIABLE listed RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${program} --gtest_list_tests: ${result}\n${listed}")
  endif()
  string(REGEX REPLACE "[][;]" "_" listed "${listed}")
  string(REPLACE "\n" ";" listed "${listed};END.")
  set(suite "")
  foreach(line IN LISTS listed)
    if(line MATCHES "^  ")
      math(EXPR cases "${cases} + 1")
    elseif(line MATCHES "^([^ ]+)\\.( |$)")
      set(next "${CMAKE_MATCH_1}")
      if(suite)
        math(EXPR processes "(${cases} + ${cases_per_process} - 1) / ${cases_per_process}")
        foreach(process RANGE 1 ${processes})
          set(name ${suite})
          if(processes GREATER 1)
            string(APPEND name "_part${process}")
          endif()
          string(REPLACE "/" "." report ${name})
          math(EXPR index "${process} - 1")
          add_test(${name} ${program} --gtest_filter=${suite}.*${left_out}
            --gtest_output=xml:${reports}/${report}.xml)
          # The file is there while the program runs. One that is left tells of an early exit.
          set_tests_properties(${name} PROPERTIES ENVIRONMENT
            "GTEST_TOTAL_SHARDS=${processes};GTEST_SHARD_INDEX=${index};\
TEST_PREMATURE_EXIT_FILE=${reports}/${report}.unfinished")
        endforeach()
      endif()
      set(suite ${next})
      set(cases 0)
    endif()
  endforeach()
endfunction()
