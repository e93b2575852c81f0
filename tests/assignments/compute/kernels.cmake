# The programs that run a student's kernels on the CPU layer: flashsteps_compute_kernel(kernel_02) makes kernel_02.
find_package(Boost CONFIG REQUIRED COMPONENTS context)
find_package(Threads REQUIRED)

# -ffp-contract=off: the bits do not depend on the machine. The kernel alone is compiled for tracing, and linked without ThreadSanitizer:
# the layer answers its calls. Under AddressSanitizer, which cannot be had together with that, the tracer watches the kernel's memory,
# and AddressSanitizer the rest
set(layer common/cuda_on_cpu)
set(flashsteps_layer_sources fiber overflow block launch warp matrix access arithmetic trace shadow global count places hooks)
set(flashsteps_kernel_options -Wall -Wextra -ffp-contract=off -fno-strict-aliasing -Wno-unknown-pragmas $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
set(flashsteps_trace_options -O1 -g -fno-sanitize=address -fsanitize=thread)
list(TRANSFORM flashsteps_layer_sources REPLACE "(.+)" "${CMAKE_CURRENT_SOURCE_DIR}/${layer}/\\1.cpp")
# Compilers that look for faults have names of their own for what this file defines
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/${layer}/hooks.cpp PROPERTIES COMPILE_OPTIONS -fno-sanitize=all)

add_library(flashsteps_kernel_layer OBJECT ${flashsteps_layer_sources} common/cuda/device_memory.cpp grader/compute/kernel_main.cpp)
target_include_directories(flashsteps_kernel_layer PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_options(flashsteps_kernel_layer PRIVATE ${flashsteps_kernel_options})
target_link_libraries(flashsteps_kernel_layer PUBLIC Boost::context Threads::Threads)

function(flashsteps_compute_kernel program)
  add_library(student_${program} OBJECT grader/compute/${program}.cpp)
  target_include_directories(student_${program} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_options(student_${program} PRIVATE ${flashsteps_kernel_options} ${flashsteps_trace_options})
  add_executable(${program})
  target_link_libraries(${program} PRIVATE flashsteps_kernel_layer student_${program})
endfunction()
