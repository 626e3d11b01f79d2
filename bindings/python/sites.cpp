// sites.cpp: an open-addressing table from (code object, instruction) to site numbers, guarded by the GIL.
#include "sites.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include <frameobject.h>

namespace thalweg::python {

namespace {

constexpr SiteId kInternal = ~SiteId{0};
constexpr std::size_t kMaxSites = std::size_t{1} << 20;

/// What CPython keeps with a code object for us, and hands back when that dies.
struct CodePlaces {
  PyCodeObject* code;
  std::vector<int> instructions;
};

struct Entry {
  PyCodeObject* code = nullptr;  // null: never used; gone(): its code object has died
  int instruction = 0;
  SiteId site = 0;
};

struct Place {
  std::string file;
  int line;
};

/// Entries are under the GIL; places also under `lock`, because failures are described without the GIL.
struct Table {
  std::vector<Entry> entries = std::vector<Entry>(1024);
  std::size_t used = 0;  // entries that are not null
  std::size_t gone = 0;  // those of them whose code has died
  std::string package_directory;
  std::mutex lock;
  std::deque<Place> places;
  /// Under the GIL: code that is made again and again adds no place.
  std::map<std::pair<std::string, int>, SiteId> numbers;
};

PyCodeObject* gone() noexcept { return reinterpret_cast<PyCodeObject*>(std::uintptr_t{1}); }

Table& table() {
  static Table* instance = new Table;  // leaked: descriptions are asked for until the very end of the process
  return *instance;
}

std::size_t hash_of(const PyCodeObject* code, int instruction) noexcept {
  const auto bits =
      reinterpret_cast<std::uintptr_t>(code) ^ (std::uintptr_t(std::uint32_t(instruction)) << 32);
  return static_cast<std::size_t>((bits * 0x9E3779B97F4A7C15ull) >> 20);
}

int instruction_of(PyFrameObject* frame) noexcept {
#if PY_VERSION_HEX >= 0x030B0000
  return PyFrame_GetLasti(frame);
#else
  return frame->f_lasti * int(sizeof(_Py_CODEUNIT));
#endif
}

std::string file_of(PyCodeObject* code) {
  const char* text = PyUnicode_AsUTF8(code->co_filename);
  if (text == nullptr) {
    PyErr_Clear();
    return "?";
  }
  return text;
}

Entry& slot_for(std::vector<Entry>& entries, PyCodeObject* code, int instruction) noexcept {
  const std::size_t mask = entries.size() - 1;
  std::size_t i = hash_of(code, instruction) & mask;
  while (entries[i].code != nullptr && (entries[i].code != code || entries[i].instruction != instruction)) {
    i = (i + 1) & mask;
  }
  return entries[i];
}

void grow(Table& sites) {
  const std::size_t alive = sites.used - sites.gone;
  std::vector<Entry> fresh(sites.entries.size() * (alive * 4 >= sites.entries.size() ? 2 : 1));
  for (const Entry& entry : sites.entries) {
    if (entry.code != nullptr && entry.code != gone()) {
      slot_for(fresh, entry.code, entry.instruction) = entry;
    }
  }
  sites.entries.swap(fresh);
  sites.used = alive;
  sites.gone = 0;
}

/// Called by CPython when a code object dies.
void forget_code(void* extra) {
  const std::unique_ptr<CodePlaces> places(static_cast<CodePlaces*>(extra));
  if (places == nullptr) return;
  Table& sites = table();
  for (const int instruction : places->instructions) {
    Entry& entry = slot_for(sites.entries, places->code, instruction);
    if (entry.code == nullptr) continue;
    entry.code = gone();
    ++sites.gone;
  }
}

/// Has `forget_code` called for it; false if CPython cannot keep that.
bool watch_code(PyCodeObject* code, int instruction) {
#if PY_VERSION_HEX >= 0x030C0000
  static const Py_ssize_t index = PyUnstable_Eval_RequestCodeExtraIndex(forget_code);
  constexpr auto get = PyUnstable_Code_GetExtra;
  constexpr auto set = PyUnstable_Code_SetExtra;
#else
  static const Py_ssize_t index = _PyEval_RequestCodeExtraIndex(forget_code);
  constexpr auto get = _PyCode_GetExtra;
  constexpr auto set = _PyCode_SetExtra;
#endif
  PyObject* object = reinterpret_cast<PyObject*>(code);
  void* extra = nullptr;
  if (index < 0 || get(object, index, &extra) != 0) {
    PyErr_Clear();
    return false;
  }
  if (extra == nullptr) {
    auto places = std::make_unique<CodePlaces>(CodePlaces{code, {}});
    if (set(object, index, places.get()) != 0) {
      PyErr_Clear();
      return false;
    }
    extra = places.release();
  }
  static_cast<CodePlaces*>(extra)->instructions.push_back(instruction);
  return true;
}

/// The line is resolved now, once per place: whoever describes it later may not hold the GIL.
SiteId add_place(Table& sites, PyCodeObject* code, int instruction) {
  if (sites.used - sites.gone >= kMaxSites) return 0;
  if (sites.used * 2 >= sites.entries.size()) grow(sites);
  std::string file = file_of(code);
  SiteId site = kInternal;
  if (sites.package_directory.empty() || !file.starts_with(sites.package_directory)) {
    const int line = PyCode_Addr2Line(code, instruction);
    SiteId& number = sites.numbers[{file, line}];
    if (number == 0) {
      std::lock_guard guard(sites.lock);
      sites.places.push_back({std::move(file), line});
      number = static_cast<SiteId>(sites.places.size());
    }
    site = number;
  }
  // An entry names its code by address, so it goes with it, or the code stays.
  if (!watch_code(code, instruction)) Py_INCREF(code);
  slot_for(sites.entries, code, instruction) = {code, instruction, site};
  ++sites.used;
  return site;
}

SiteId site_of(PyFrameObject* frame) noexcept {
  PyCodeObject* code = PyFrame_GetCode(frame);
  const int instruction = instruction_of(frame);
  Table& sites = table();
  const Entry& entry = slot_for(sites.entries, code, instruction);
  SiteId site = entry.site;
  if (entry.code == nullptr) [[unlikely]] {
    try {
      site = add_place(sites, code, instruction);
    } catch (const std::bad_alloc&) {
      site = 0;
    }
  }
  Py_DECREF(code);
  return site;
}

}  // namespace

SiteId current_site() noexcept {
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame != nullptr) {
    const SiteId site = site_of(frame);
    if (site != kInternal) {
      Py_DECREF(frame);
      return site;
    }
    PyFrameObject* caller = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = caller;
  }
  return 0;
}

std::string describe_site(SiteId site) {
  Table& sites = table();
  std::lock_guard guard(sites.lock);
  if (site == 0 || site > sites.places.size()) return {};
  const Place& place = sites.places[site - 1];
  return place.file + ":" + std::to_string(place.line);
}

void set_package_directory(std::string directory) { table().package_directory = std::move(directory); }

void reset_sites_after_fork() noexcept { new (&table().lock) std::mutex; }

}  // namespace thalweg::python
