# The library that compare.py times: steps 05 to 08 compiled once more, as a shared library needs it, with the flags of the programs and those given.
function(flashsteps_binding name)
  set(sources benchmarks/binding.cpp benchmarks/binding_absent.cpp benchmarks/peak.cpp
      ${PROJECT_SOURCE_DIR}/common/attention/verbs.cpp ${PROJECT_SOURCE_DIR}/common/runner/tile_choice.cpp ${PROJECT_SOURCE_DIR}/common/runner/progress.cpp)
  foreach(step IN LISTS FLASHSTEPS_STEPS)
    if(step MATCHES "^0[5-8]")
      list(APPEND sources ${PROJECT_SOURCE_DIR}/steps/${step}/step.cpp)
    endif()
  endforeach()
  add_library(${name} SHARED ${sources})
  target_include_directories(${name} PRIVATE ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(${name} PRIVATE flashsteps_options OpenMP::OpenMP_CXX fmt::fmt)
  target_compile_options(${name} PRIVATE ${ARGN})
  # Nothing but the C interface is seen from outside, so calls inside the library are those of a program
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  set(flags ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}} $<JOIN:$<TARGET_PROPERTY:${name},COMPILE_OPTIONS>, >)
  list(JOIN flags " " flags)
  target_compile_definitions(${name} PRIVATE "FLASHSTEPS_FLAGS=\"${flags}\"" "FLASHSTEPS_BUILD_TYPE=\"${CMAKE_BUILD_TYPE}\"" "FLASHSTEPS_COMPILER=\"${CMAKE_CXX_COMPILER_ID}\"")
  if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    target_link_options(${name} PRIVATE LINKER:--no-undefined)
  endif()
endfunction()

flashsteps_binding(compare_binding)
# The same held to AVX2, where the processor has AVX-512
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  flashsteps_binding(compare_binding_avx2 -mavx2 -mfma -mno-avx512f)
  set_target_properties(compare_binding_avx2 PROPERTIES EXCLUDE_FROM_ALL ON)
endif()

flashsteps_script("the library of make compare" compare_binding.py ${PROJECT_BINARY_DIR})
# A library under the address sanitizer wants its run-time library loaded before Python
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=[a-z,]*address")
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libasan.so OUTPUT_VARIABLE sanitizer OUTPUT_STRIP_TRAILING_WHITESPACE)
  set_tests_properties("program: the library of make compare" PROPERTIES ENVIRONMENT "FLASHSTEPS_PRELOAD=${sanitizer}")
endif()
