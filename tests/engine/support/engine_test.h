// engine_test.h: the configurations that the engine's tests sweep, and the fixture that runs a test in each.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include <thalweg/engine.h>

#include "engine/support/gate.h"
#include "engine/support/test_ops.h"

namespace thalweg::testing {

/// One way to drive an engine.
struct Drive {
  EngineMode mode = EngineMode::threaded;
  int threads = 2;
  bool run_inline = true;
  int devices = 1;

  EngineOptions options() const {
    EngineOptions options;
    options.mode = mode;
    options.num_threads = threads;
    options.run_inline = run_inline;
    options.cpu_devices = devices;
    return options;
  }
};

inline std::string name_of(EngineMode mode) {
  return mode == EngineMode::threaded      ? "threaded"
         : mode == EngineMode::synchronous ? "synchronous"
                                           : "caller";
}
inline void PrintTo(const Drive& drive, std::ostream* out) {
  *out << name_of(drive.mode) << "_" << drive.threads << (drive.run_inline ? "_inline" : "_tasks");
  if (drive.devices > 1) *out << "_" << drive.devices << "devices";
}
inline std::string drive_name(const ::testing::TestParamInfo<Drive>& info) {
  return ::testing::PrintToString(info.param);
}

/// Threaded and caller-driven, 1, 2 and 8 threads, inline on and off.
inline std::vector<Drive> asynchronous_drives(int devices = 1) {
  std::vector<Drive> drives;
  for (EngineMode mode : {EngineMode::threaded, EngineMode::caller_driven}) {
    for (int threads : {1, 2, 8}) {
      for (bool run_inline : {true, false}) drives.push_back({mode, threads, run_inline, devices});
    }
  }
  return drives;
}
inline std::vector<Drive> all_drives(int devices = 1) {
  std::vector<Drive> drives = asynchronous_drives(devices);
  drives.push_back({EngineMode::synchronous, 1, true, devices});
  return drives;
}

/// Lets oneTBB use more workers than this machine has cores, and fails what hangs.
class EngineTestBase {
 public:
  EngineTestBase() : workers_(tbb::global_control::max_allowed_parallelism, 10), watchdog_(test_name()) {}

 private:
  static std::string test_name() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    return info == nullptr ? "test" : std::string(info->test_suite_name()) + "." + info->name();
  }

  tbb::global_control workers_;
  Watchdog watchdog_;
};

/// A test that sets up its own engine.
class EngineTest : public ::testing::Test, private EngineTestBase {};

/// A test that runs once per drive, on `engine`.
class DrivenTest : public ::testing::TestWithParam<Drive>, private EngineTestBase {
 protected:
  EngineOptions options() const { return GetParam().options(); }
  bool is_synchronous() const { return GetParam().mode == EngineMode::synchronous; }

  Engine engine{GetParam().options(), &register_test_kernels};
};

}  // namespace thalweg::testing
