// onednn.cpp: finds and loads oneDNN and calls its sgemm. Its kernels are made for the processor at hand when
// they are first wanted; those of OpenBLAS reach some 80 % of their speed on float32.
#include "kernels/cpu/onednn.h"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string>

#include <dlfcn.h>

#include <thalweg/errors.h>

namespace thalweg::cpu {
namespace {

/// dnnl_sgemm of oneDNN's C API: row-major matrices, 'N' or 'T' for each, 0 for success.
using Sgemm = int (*)(char, char, std::int64_t, std::int64_t, std::int64_t, float, const float*, std::int64_t,
                      const float*, std::int64_t, float, float*, std::int64_t);

/// The entry points of the library. Those of OpenMP are missing where it runs on something else.
struct OneDnn {
  Sgemm sgemm = nullptr;
  int (*max_threads)() = nullptr;
  void (*set_threads)(int) = nullptr;
};

/// The library in use; written once under `load_onednn`'s lock, before the release store of its pointer.
OneDnn loaded_onednn;
std::atomic<const OneDnn*> current_onednn{nullptr};

bool try_library(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return false;
  loaded_onednn.sgemm = reinterpret_cast<Sgemm>(dlsym(library, "dnnl_sgemm"));
  // Of the library or of one that it needs.
  loaded_onednn.max_threads = reinterpret_cast<int (*)()>(dlsym(library, "omp_get_max_threads"));
  loaded_onednn.set_threads = reinterpret_cast<void (*)(int)>(dlsym(library, "omp_set_num_threads"));
  if (loaded_onednn.sgemm != nullptr && loaded_onednn.max_threads != nullptr &&
      loaded_onednn.set_threads != nullptr) {
    return true;
  }
  // One that starts threads by other means than OpenMP could not be told to run on this one.
  loaded_onednn = {};
  dlclose(library);
  return false;
}

void find_library(std::string_view op) {
  const char* variable = std::getenv("THALWEG_ONEDNN");
  const std::string named = variable == nullptr ? "" : variable;
  if (named == "off") return;
  if (!named.empty()) {
    if (try_library(named)) return;
    throw EngineError(std::string(op) + ": cannot use THALWEG_ONEDNN=" + named +
                      "; it must be \"off\" or name a oneDNN shared library built with OpenMP");
  }
  if (!try_library("libdnnl.so.3")) try_library("libdnnl.so.2");
}

/// One OpenMP thread for this thread's calls, for a while.
class OneThread {
 public:
  explicit OneThread(const OneDnn& library) noexcept : library_(library), before_(library.max_threads()) {
    if (before_ != 1) library_.set_threads(1);
  }
  ~OneThread() {
    if (before_ != 1) library_.set_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const OneDnn& library_;
  int before_;
};

}  // namespace

void load_onednn(std::string_view op) {
  if (current_onednn.load(std::memory_order_acquire) != nullptr) return;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (current_onednn.load(std::memory_order_relaxed) != nullptr) return;
  find_library(op);
  // Pairs with the acquire above: whoever sees the pointer sees the functions.
  current_onednn.store(&loaded_onednn, std::memory_order_release);
}

bool onednn_gemm(GemmSize size, BlasMatrix<float> a, BlasMatrix<float> b, float* result,
                 std::int64_t result_leading) noexcept {
  constexpr double kWork = 1e6;  // multiply-adds; a smaller product is as fast in OpenBLAS
  const OneDnn& library = *current_onednn.load(std::memory_order_acquire);
  if (library.sgemm == nullptr ||
      static_cast<double>(size.m) * static_cast<double>(size.n) * static_cast<double>(size.k) < kWork) {
    return false;
  }
  const OneThread one(library);
  return library.sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', size.m, size.n, size.k, 1.0F,
                       a.data, a.leading, b.data, b.leading, 0.0F, result, result_leading) == 0;
}

}  // namespace thalweg::cpu
