// operand_names.h: the names that users gave to values, for dumps.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>

namespace thalweg {

/// Names by operand id. A value's death is not told to it, so it keeps a limited number and forgets the
/// oldest: a program that names millions of values must not grow. Not thread-safe.
class OperandNames {
 public:
  static constexpr std::size_t kKept = std::size_t{1} << 16;

  void set(std::uint64_t id, std::string name) {
    const bool is_new = names_.insert_or_assign(id, std::move(name)).second;
    if (!is_new) return;
    age_.push_back(id);
    forget_oldest();
  }
  /// The name, valid until the next call; nullptr if there is none.
  const std::string* find(std::uint64_t id) const {
    const auto found = names_.find(id);
    return found == names_.end() ? nullptr : &found->second;
  }
  bool empty() const noexcept { return names_.empty(); }
  std::size_t size() const noexcept { return names_.size(); }
  /// While on, nothing is forgotten: a recording must show every name given during it.
  void keep_all(bool on) {
    keep_all_ = on;
    forget_oldest();
  }

 private:
  void forget_oldest() {
    while (!keep_all_ && age_.size() > kKept) {
      names_.erase(age_.front());
      age_.pop_front();
    }
  }

  std::unordered_map<std::uint64_t, std::string> names_;
  std::deque<std::uint64_t> age_;
  bool keep_all_ = false;
};

}  // namespace thalweg
