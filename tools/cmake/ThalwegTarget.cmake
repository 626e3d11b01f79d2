# What every target of the house has in common, and the per-ISA compilation of kernels.

# thalweg_setup_target(<target>): language level, warnings, floating-point rules, sanitizer.
#
# -ffp-contract=off because results must not depend on which instruction set a kernel was compiled for: the
# compiler may not fuse a*b+c where the source does not. For the same reason never -ffast-math, and never
# -march=native, which would also make the binary unfit for another machine.
function(thalweg_setup_target target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES
    CXX_EXTENSIONS OFF
    POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -ffp-contract=off)
  if(THALWEG_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(THALWEG_SANITIZE STREQUAL "address")
    # Without vptr: oneTBB's flow-graph headers cast to a derived task while its base is being constructed.
    set(flags -fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer)
  elseif(THALWEG_SANITIZE STREQUAL "thread")
    # -Wno-tsan: GCC warns about every atomic_thread_fence, oneTBB's headers have some.
    set(flags -fsanitize=thread -fno-omit-frame-pointer -Wno-tsan)
  elseif(NOT THALWEG_SANITIZE STREQUAL "none")
    message(FATAL_ERROR "THALWEG_SANITIZE is '${THALWEG_SANITIZE}'; expected none, address or thread")
  endif()
  target_compile_options(${target} PRIVATE ${flags})
  # PUBLIC: whoever links an instrumented static library needs the sanitizer's runtime.
  target_link_options(${target} PUBLIC ${flags})
endfunction()

# thalweg_add_isa_sources(<target> <source>...): compiles each source once per instruction set, with
# THALWEG_ISA naming the set, and links all the copies into the target; the kernel picks one at run time.
#
# Each copy must keep its code in `namespace THALWEG_ISA` or an anonymous one: an inline function that two
# copies share is merged by the linker, and the baseline processor may then be handed the AVX-512 body. The test
# Isa.ObjectsShareNoCode (tools/check_isa) finds such functions.
function(thalweg_add_isa_sources target)
  set(sources ${ARGN})
  if(NOT sources)
    return()
  endif()
  set(isas baseline)
  set(flags_baseline)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    list(APPEND isas avx2 avx512)
    set(flags_avx2 -mavx2 -mfma -mbmi2)
    set(flags_avx512 -mavx512f -mavx512vl -mavx512dq -mavx512bw -mfma -mprefer-vector-width=512)
  endif()
  foreach(isa IN LISTS isas)
    set(objects ${target}_${isa})
    add_library(${objects} OBJECT ${sources})
    thalweg_setup_target(${objects})
    target_compile_options(${objects} PRIVATE ${flags_${isa}})
    target_compile_definitions(${objects} PRIVATE THALWEG_ISA=${isa})
    target_include_directories(${objects} PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/engine")
    target_link_libraries(${objects} PRIVATE thalweg_engine thalweg::sleef thalweg::pocketfft
                                             thalweg::libdivide)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
    set_property(TARGET ${target} APPEND PROPERTY THALWEG_ISA_OBJECTS ${objects})
  endforeach()
endfunction()
