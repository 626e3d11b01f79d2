// json_writer.h: appends JSON to a text, without a document in between: a dump has hundreds of thousands of
// lines.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace thalweg {

/// Appends one JSON value to `out`. Bytes of a text that are not UTF-8 become U+FFFD, NaN and the infinities
/// the strings that Python's float() reads.
class JsonValue {
 public:
  explicit JsonValue(std::string& out) : out_(out) {}

  void null() { out_ += "null"; }
  void boolean(bool value) { out_ += value ? "true" : "false"; }
  template <std::integral T>
  void integer(T value) {
    char digits[24];
    out_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  }
  void number(double value) {
    if (value != value) return text("nan");
    if (value - value != 0) return text(value < 0 ? "-inf" : "inf");
    out_ += nlohmann::json(value).dump();
  }
  void text(std::string_view value) {
    if (is_plain(value)) {
      out_ += '"';
      out_ += value;
      out_ += '"';
    } else {
      out_ += nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    }
  }
  void text_or_null(std::string_view value) { value.empty() ? null() : text(value); }
  /// `write(item, element)` writes each element.
  template <class Range, class Write>
  void array(const Range& range, Write&& write) {
    out_ += '[';
    bool first = true;
    for (const auto& element : range) {
      if (!first) out_ += ',';
      first = false;
      write(*this, element);
    }
    out_ += ']';
  }
  template <class Range>
  void integers(const Range& range) {
    array(range, [](JsonValue& item, const auto& element) { item.integer(element); });
  }

 private:
  /// Most texts need no escapes.
  static bool is_plain(std::string_view value) noexcept {
    for (const char letter : value) {
      if (letter < ' ' || letter > '~' || letter == '"' || letter == '\\') return false;
    }
    return true;
  }

  std::string& out_;
};

/// Appends one JSON object: `object.key("id").integer(3)`.
class JsonObject {
 public:
  explicit JsonObject(std::string& out) : out_(out) { out_ += '{'; }
  void end() { out_ += '}'; }

  JsonValue key(std::string_view name) {
    if (!first_) out_ += ',';
    first_ = false;
    JsonValue(out_).text(name);
    out_ += ':';
    return JsonValue(out_);
  }
  JsonObject object(std::string_view name) {
    key(name);
    return JsonObject(out_);
  }

 private:
  std::string& out_;
  bool first_ = true;
};

}  // namespace thalweg
