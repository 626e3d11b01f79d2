// blas.cpp: finds and loads OpenBLAS and calls its gemm and gemv through one of the ABIs it is built with.
#include "kernels/cpu/blas.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string>

#include <dlfcn.h>
#include <link.h>

#include <thalweg/errors.h>

#include "kernels/cpu/onednn.h"

namespace thalweg::cpu {
namespace {

// CBLAS enumerators.
constexpr int kRowMajor = 101;
constexpr int kNoTrans = 111;
constexpr int kTrans = 112;

/// Names of the same functions: Debian's, then those of SciPy's builds, which prefix and suffix them.
struct Naming {
  const char* prefix;
  const char* suffix;
  bool wide;  ///< integers have 64 bits
};
constexpr Naming kNamings[] = {
    {"", "", false}, {"scipy_", "", false}, {"scipy_", "64_", true}, {"", "64_", true}};

/// The entry points of one library.
struct Blas {
  void* sgemm = nullptr;
  void* dgemm = nullptr;
  void* cgemm = nullptr;
  void* zgemm = nullptr;
  void* sgemv = nullptr;
  void* dgemv = nullptr;
  void* cgemv = nullptr;
  void* zgemv = nullptr;
  void* library = nullptr;
  const Naming* naming = nullptr;
  bool reentrant = true;  ///< threads may call it at the same time
};

struct Entry {
  void* Blas::*place;
  const char* name;
};
constexpr Entry kEntries[] = {
    {&Blas::sgemm, "cblas_sgemm"}, {&Blas::dgemm, "cblas_dgemm"}, {&Blas::cgemm, "cblas_cgemm"},
    {&Blas::zgemm, "cblas_zgemm"}, {&Blas::sgemv, "cblas_sgemv"}, {&Blas::dgemv, "cblas_dgemv"},
    {&Blas::cgemv, "cblas_cgemv"}, {&Blas::zgemv, "cblas_zgemv"},
};

/// The library in use; written once under `load_blas`'s lock, before the release store of its pointer.
Blas loaded_blas;
std::atomic<const Blas*> current_blas{nullptr};

void* symbol(void* library, const Naming& naming, const char* name) {
  return dlsym(library, (std::string(naming.prefix) + name + naming.suffix).c_str());
}

/// False for builds without threads: unless built with USE_LOCKING, which does not show, they take their
/// buffers from a list that nothing guards, and two calls may work in the same one. Debian's 0.3.21 does.
bool is_reentrant(void* library, const Naming& naming) {
  using GetParallel = int (*)();
  const auto parallel = reinterpret_cast<GetParallel>(symbol(library, naming, "openblas_get_parallel"));
  return parallel == nullptr || parallel() != 0;
}

bool resolve(void* library, Blas* blas) {
  for (const Naming& naming : kNamings) {
    bool complete = true;
    for (const auto& [entry, name] : kEntries) {
      blas->*entry = symbol(library, naming, name);
      complete = complete && blas->*entry != nullptr;
    }
    blas->library = library;
    blas->naming = &naming;
    if (!complete) continue;
    blas->reentrant = is_reentrant(library, naming);
    return true;
  }
  return false;
}

/// Gives an environment variable a value for a while, unless the user has set it.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name), set_(std::getenv(name) == nullptr) {
    if (set_) setenv(name_, value, 0);
  }
  ~ScopedVariable() {
    if (set_) unsetenv(name_);
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  bool set_;
};

void* open_library(const std::string& path) {
  // Debian's pthread build starts its threads while it is loaded.
  const ScopedVariable threads("OPENBLAS_NUM_THREADS", "1");
  return dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
}

/// The OpenBLAS core type for this processor if the one that the library chose wastes most of it, else
/// nullptr. A processor newer than the library is taken for one without AVX, at a tenth of its speed.
const char* better_core([[maybe_unused]] void* library, [[maybe_unused]] const Naming& naming) {
#if defined(__x86_64__)
  using CoreName = const char* (*)();
  const auto core_name = reinterpret_cast<CoreName>(symbol(library, naming, "openblas_get_corename"));
  if (core_name == nullptr) return nullptr;
  const std::string core = core_name();
  for (const char* old : {"Prescott", "Core2", "Penryn", "Dunnington", "Nehalem", "Barcelona", "Generic"}) {
    if (core != old) continue;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
      return "SkylakeX";
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
  }
#endif
  return nullptr;
}

/// Opens `path` and takes its functions. A library that the process already uses keeps its number of threads
/// and its core type: they are not ours to change.
bool try_library(const std::string& path, std::string* tried) {
  void* present = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  void* library = present == nullptr ? open_library(path) : present;
  *tried += (tried->empty() ? "" : ", ") + path;
  if (library == nullptr) return false;
  if (!resolve(library, &loaded_blas)) {
    *tried += " (without cblas functions)";
    dlclose(library);
    return false;
  }
  if (present != nullptr) return true;
  if (const char* core = better_core(library, *loaded_blas.naming); core != nullptr) {
    // The core type is read while the library is loaded, so load it again.
    dlclose(library);
    const ScopedVariable type("OPENBLAS_CORETYPE", core);
    library = open_library(path);
    if (library == nullptr || !resolve(library, &loaded_blas)) return false;
  }
  using SetThreads = void (*)(int);
  const auto set_threads =
      reinterpret_cast<SetThreads>(symbol(library, *loaded_blas.naming, "openblas_set_num_threads"));
  if (set_threads != nullptr) set_threads(1);
  return true;
}

/// The folder of the C library, which is the multi-architecture library folder where there is one.
std::string library_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&std::abort), &info) == 0 || info.dli_fname == nullptr) return {};
  const std::string path = info.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string{} : path.substr(0, slash + 1);
}

/// The path of an OpenBLAS of a wheel that the process has loaded, or "".
std::string wheel_library() {
  std::string found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        const std::string path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
        if (path.find("openblas", path.rfind('/') + 1) == std::string::npos) return 0;
        *static_cast<std::string*>(result) = path;
        return 1;
      },
      &found);
  return found;
}

bool find_library(std::string_view op, std::string* tried) {
  const char* named = std::getenv("THALWEG_BLAS");
  if (named != nullptr && *named != '\0') {
    if (try_library(named, tried)) return true;
    throw EngineError(std::string(op) + ": cannot use THALWEG_BLAS=" + std::string(named) +
                      "; it must name an OpenBLAS shared library");
  }
  const std::string folder = library_folder();
  if (!folder.empty() && try_library(folder + "openblas-pthread/libopenblas.so.0", tried)) return true;
  if (try_library("libopenblas.so.0", tried)) return true;
  const std::string wheel = wheel_library();
  return !wheel.empty() && try_library(wheel, tried);
}

}  // namespace

void load_blas(std::string_view op) {
  load_onednn(op);
  if (current_blas.load(std::memory_order_acquire) != nullptr) return;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (current_blas.load(std::memory_order_relaxed) != nullptr) return;
  std::string tried;
  if (!find_library(op, &tried)) {
    throw EngineError(std::string(op) + ": no OpenBLAS found (tried " + tried +
                      "); install it (Debian, Ubuntu: apt-get install libopenblas0-pthread) or let "
                      "THALWEG_BLAS name its file");
  }
  // Pairs with the acquire above: whoever sees the pointer sees the functions.
  current_blas.store(&loaded_blas, std::memory_order_release);
}

namespace {

const Blas& blas() noexcept { return *current_blas.load(std::memory_order_acquire); }

}  // namespace

void* blas_symbol(const char* name) { return symbol(blas().library, *blas().naming, name); }

bool blas_integers_are_wide() noexcept { return blas().naming->wide; }

std::unique_lock<std::mutex> blas_call_lock() {
  static std::mutex mutex;
  return blas().reentrant ? std::unique_lock<std::mutex>() : std::unique_lock(mutex);
}

namespace {

using functors::Complex;

/// How CBLAS takes the factors alpha and beta: numbers by value, complex numbers by address.
template <class T>
struct Factor {
  using Type = T;
  static Type of(const T& value) { return value; }
};
template <class T>
struct Factor<Complex<T>> {
  using Type = const Complex<T>*;
  static Type of(const Complex<T>& value) { return &value; }
};

template <class Int, class T>
void call_gemm(void* function, GemmSize size, BlasMatrix<T> a, BlasMatrix<T> b, T* result,
               std::int64_t leading) {
  using By = typename Factor<T>::Type;
  using Gemm = void (*)(int, int, int, Int, Int, Int, By, const T*, Int, const T*, Int, By, T*, Int);
  const T one = 1;
  const T zero = 0;
  reinterpret_cast<Gemm>(function)(kRowMajor, a.transposed ? kTrans : kNoTrans,
                                   b.transposed ? kTrans : kNoTrans, static_cast<Int>(size.m),
                                   static_cast<Int>(size.n), static_cast<Int>(size.k), Factor<T>::of(one),
                                   a.data, static_cast<Int>(a.leading), b.data, static_cast<Int>(b.leading),
                                   Factor<T>::of(zero), result, static_cast<Int>(leading));
}

template <class Int, class T>
void call_gemv(void* function, std::int64_t rows, std::int64_t columns, BlasMatrix<T> a, BlasVector<T> x,
               T* result) {
  using By = typename Factor<T>::Type;
  using Gemv = void (*)(int, int, Int, Int, By, const T*, Int, const T*, Int, By, T*, Int);
  const T one = 1;
  const T zero = 0;
  // BLAS counts rows and columns of the matrix as stored.
  const std::int64_t stored_rows = a.transposed ? columns : rows;
  const std::int64_t stored_columns = a.transposed ? rows : columns;
  reinterpret_cast<Gemv>(function)(kRowMajor, a.transposed ? kTrans : kNoTrans, static_cast<Int>(stored_rows),
                                   static_cast<Int>(stored_columns), Factor<T>::of(one), a.data,
                                   static_cast<Int>(a.leading), x.data, static_cast<Int>(x.stride),
                                   Factor<T>::of(zero), result, Int{1});
}

template <class T>
void any_gemm(void* function, GemmSize size, BlasMatrix<T> a, BlasMatrix<T> b, T* result,
              std::int64_t leading) {
  const auto lock = blas_call_lock();
  if (blas_integers_are_wide()) {
    call_gemm<std::int64_t>(function, size, a, b, result, leading);
  } else {
    call_gemm<int>(function, size, a, b, result, leading);
  }
}

template <class T>
void any_gemv(void* function, std::int64_t rows, std::int64_t columns, BlasMatrix<T> a, BlasVector<T> x,
              T* result) {
  // Some versions scale the result by 0 instead of overwriting it, and 0 * nan is nan.
  std::fill_n(result, rows, T(0));
  const auto lock = blas_call_lock();
  if (blas_integers_are_wide()) {
    call_gemv<std::int64_t>(function, rows, columns, a, x, result);
  } else {
    call_gemv<int>(function, rows, columns, a, x, result);
  }
}

}  // namespace

void gemm(GemmSize size, BlasMatrix<float> a, BlasMatrix<float> b, float* result,
          std::int64_t result_leading) noexcept {
  if (onednn_gemm(size, a, b, result, result_leading)) return;
  any_gemm(blas().sgemm, size, a, b, result, result_leading);
}

void gemm(GemmSize size, BlasMatrix<double> a, BlasMatrix<double> b, double* result,
          std::int64_t result_leading) noexcept {
  any_gemm(blas().dgemm, size, a, b, result, result_leading);
}

void gemm(GemmSize size, BlasMatrix<Complex<float>> a, BlasMatrix<Complex<float>> b, Complex<float>* result,
          std::int64_t result_leading) noexcept {
  any_gemm(blas().cgemm, size, a, b, result, result_leading);
}

void gemm(GemmSize size, BlasMatrix<Complex<double>> a, BlasMatrix<Complex<double>> b,
          Complex<double>* result, std::int64_t result_leading) noexcept {
  any_gemm(blas().zgemm, size, a, b, result, result_leading);
}

void gemv(std::int64_t rows, std::int64_t columns, BlasMatrix<float> a, BlasVector<float> x,
          float* result) noexcept {
  any_gemv(blas().sgemv, rows, columns, a, x, result);
}

void gemv(std::int64_t rows, std::int64_t columns, BlasMatrix<double> a, BlasVector<double> x,
          double* result) noexcept {
  any_gemv(blas().dgemv, rows, columns, a, x, result);
}

void gemv(std::int64_t rows, std::int64_t columns, BlasMatrix<Complex<float>> a, BlasVector<Complex<float>> x,
          Complex<float>* result) noexcept {
  any_gemv(blas().cgemv, rows, columns, a, x, result);
}

void gemv(std::int64_t rows, std::int64_t columns, BlasMatrix<Complex<double>> a,
          BlasVector<Complex<double>> x, Complex<double>* result) noexcept {
  any_gemv(blas().zgemv, rows, columns, a, x, result);
}

}  // namespace thalweg::cpu
