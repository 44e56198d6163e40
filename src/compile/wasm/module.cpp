#include "compile/wasm/module.hpp"

#include <algorithm>

namespace lockstep::compile::wasm {

void put_unsigned(Bytes& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(uint8_t(value | 0x80));
  to.push_back(uint8_t(value));
}

void put_signed(Bytes& to, int64_t value) {
  for (;; value >>= 7) {
    const uint8_t low = uint8_t(value & 0x7f);
    const bool last = value >= -64 && value < 64;
    to.push_back(last ? low : uint8_t(low | 0x80));
    if (last) return;
  }
}

namespace {

void append(Bytes& to, const Bytes& more) { to.insert(to.end(), more.begin(), more.end()); }

void put_name(Bytes& to, std::string_view name) {
  put_unsigned(to, name.size());
  to.insert(to.end(), name.begin(), name.end());
}

void put_section(Bytes& to, uint8_t number, size_t entries, const Bytes& content) {
  if (entries == 0) return;
  Bytes whole;
  put_unsigned(whole, entries);
  append(whole, content);
  to.push_back(number);
  put_unsigned(to, whole.size());
  append(to, whole);
}

void put_kinds(Bytes& to, const std::vector<Kind>& kinds) {
  put_unsigned(to, kinds.size());
  for (Kind kind : kinds) to.push_back(uint8_t(kind));
}

}  // namespace

uint32_t Module::type_of(const Signature& signature) {
  const auto place = size_t(std::find(types_.begin(), types_.end(), signature) - types_.begin());
  if (place == types_.size()) types_.push_back(signature);
  return uint32_t(place);
}

uint32_t Module::import_function(std::string_view name, const Signature& signature) {
  imports_.push_back({std::string(name), type_of(signature)});
  return uint32_t(imports_.size() - 1);
}

uint32_t Module::declare(const Signature& signature) {
  functions_.push_back(type_of(signature));
  bodies_.emplace_back();
  return uint32_t(imports_.size() + functions_.size() - 1);
}

void Module::define(uint32_t function, Bytes body) { bodies_[function - imports_.size()] = std::move(body); }

void Module::export_function(std::string_view name, uint32_t function) {
  exports_.push_back({std::string(name), function});
}

Bytes Module::finish() const {
  Bytes all{0, 'a', 's', 'm', 1, 0, 0, 0};
  Bytes content;
  for (const Signature& type : types_) {
    content.push_back(0x60);
    put_kinds(content, type.takes);
    put_kinds(content, type.gives);
  }
  put_section(all, 1, types_.size(), content);

  content.clear();
  put_name(content, "core");
  put_name(content, "memory");
  // A memory of one page at least; a shared one has a limit: 65536 pages.
  if (shared_)
    content.insert(content.end(), {2, 3, 1, 0x80, 0x80, 4});
  else
    content.insert(content.end(), {2, 0, 1});
  for (const Named& import : imports_) {
    put_name(content, "core");
    put_name(content, import.name);
    content.push_back(0);
    put_unsigned(content, import.index);
  }
  put_section(all, 2, imports_.size() + 1, content);

  content.clear();
  for (uint32_t type : functions_) put_unsigned(content, type);
  put_section(all, 3, functions_.size(), content);

  content.clear();
  for (const Named& one : exports_) {
    put_name(content, one.name);
    content.push_back(0);
    put_unsigned(content, one.index);
  }
  put_section(all, 7, exports_.size(), content);

  content.clear();
  for (const Bytes& body : bodies_) {
    put_unsigned(content, body.size());
    append(content, body);
  }
  put_section(all, 10, bodies_.size(), content);
  return all;
}

}  // namespace lockstep::compile::wasm
